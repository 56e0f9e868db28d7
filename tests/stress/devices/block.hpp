#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include <tensorpool/device/backend.hpp>

namespace tensorpool::stress::devices {

/// A stream and its device. Each device has a default stream, all with the same handle.
struct StreamOf {
    int device = 0;
    StreamHandle handle = nullptr;

    friend bool operator==(const StreamOf&, const StreamOf&) = default;
};
using Streams = std::vector<StreamOf>;

inline bool contains(const Streams& streams, StreamOf stream) {
    return std::find(streams.begin(), streams.end(), stream) != streams.end();
}

/// A block in use, and what the program knows about it.
struct Block {
    std::uint64_t number = 0;
    void* address = nullptr;
    std::size_t requested = 0;
    std::size_t usable = 0;
    StreamOf home;
    bool scalar = false;
    /// The content once all submitted work is done. Empty: nothing was written to it yet.
    std::optional<std::uint64_t> word;
    Streams users;         ///< the last writer, or its home, and all readers since
    Streams reported;      ///< other streams reported to the allocator
    Streams unreported;    ///< other streams that used it but were not reported
    unsigned holders = 0;  ///< graphs and running calls that need the block
};

/// Writes a word at a few positions of a block, or checks it there. Kernels that accessed every
/// byte would be too slow.
class Samples {
public:
    Samples(void* address, std::size_t bytes) noexcept
        : begin_(static_cast<std::byte*>(address)), bytes_(bytes) {}

    void write(std::uint64_t word) const noexcept {
        for_each([&](std::byte* at, std::size_t length) { std::memcpy(at, &word, length); });
    }
    bool hold(std::uint64_t word) const noexcept {
        bool all = true;
        for_each([&](const std::byte* at, std::size_t length) {
            all = all && std::memcmp(at, &word, length) == 0;
        });
        return all;
    }

private:
    static constexpr std::size_t word_bytes = sizeof(std::uint64_t);

    template <class Function>
    void for_each(Function function) const noexcept {
        function(begin_, std::min(bytes_, word_bytes));
        if (bytes_ < 3 * word_bytes) return;
        function(begin_ + bytes_ / 2 / word_bytes * word_bytes, word_bytes);
        function(begin_ + bytes_ - word_bytes, word_bytes);
    }

    std::byte* begin_;
    std::size_t bytes_;
};

}  // namespace tensorpool::stress::devices
