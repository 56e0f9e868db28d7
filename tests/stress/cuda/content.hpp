#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "stress/cuda/card.hpp"

namespace tensorpool::stress::cuda {

/// Fills memory of the card in the order of streams, copies it back and compares it. One thread
/// may use it at a time. A failed call is a failure of the test.
class Content {
public:
    explicit Content(Backend& backend);
    /// Waits for the device.
    ~Content();
    Content(const Content&) = delete;
    Content& operator=(const Content&) = delete;

    void fill(void* memory, std::size_t bytes, std::uint8_t byte, StreamHandle stream);
    /// Submits a copy of the memory to the host. `compare` checks that each byte is `byte`.
    void expect(const void* memory, std::size_t bytes, std::uint8_t byte, StreamHandle stream);
    /// Waits for the device and checks all copies.
    void compare();

    /// Orders later work of `later` after all work submitted to `first` so far.
    void order(StreamHandle first, StreamHandle later);
    /// Submits work that takes long to the stream, so that it falls behind.
    void keep_busy(StreamHandle stream);

private:
    struct Copy {
        std::size_t offset;
        std::size_t bytes;
        std::uint8_t byte;
    };

    void expect_ok(DeviceStatus status, const char* call);

    Backend& backend_;
    const std::size_t buffer_bytes_ = quick_or_long(8 * mib, 128 * mib);
    const std::size_t busy_bytes_ = quick_or_long(mib, 64 * mib);
    void* buffer_ = nullptr;  // pinned
    void* busy_ = nullptr;    // memory of the card
    EventHandle event_ = nullptr;
    std::vector<Copy> copies_;
    std::size_t used_ = 0;  // bytes of the buffer
};

}  // namespace tensorpool::stress::cuda
