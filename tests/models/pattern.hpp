#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::testing {

/// The content that a test writes into a block and checks later: a function of the block's mark and
/// the position. Up to 4 KiB, every byte is written; beyond that, words at both ends, two on every
/// page of the first 64 KiB, and two on one page in eight of the rest, which depends on the mark: a
/// page costs some machines 17 us when it is first written.
class Pattern {
public:
    explicit Pattern(std::uint64_t mark) noexcept : mark_(mark) {}

    void write(void* p, std::size_t bytes) const noexcept {
        for_each_word(bytes, [&](std::size_t at, std::size_t length) {
            const std::uint64_t word = word_at(at);
            std::memcpy(static_cast<char*>(p) + at, &word, length);
        });
    }

    /// Returns the position of the first byte that changed among the first `bytes` bytes of a block
    /// that was written with `written_bytes`; `bytes` if there is none.
    std::size_t first_difference(const void* p, std::size_t bytes,
                                 std::size_t written_bytes) const noexcept {
        std::size_t found = bytes;
        for_each_word(written_bytes, [&](std::size_t at, std::size_t length) {
            const std::uint64_t word = word_at(at);
            for (std::size_t i = 0; i < length && at + i < found; ++i) {
                const auto is = static_cast<const unsigned char*>(p)[at + i];
                if (is != reinterpret_cast<const unsigned char*>(&word)[i]) found = at + i;
            }
        });
        return found;
    }

private:
    static constexpr std::size_t whole_bytes = 4096;
    static constexpr std::size_t dense_bytes = 16 * whole_bytes;
    static constexpr std::size_t sparse_pages = 8;
    static constexpr std::size_t word_bytes = sizeof(std::uint64_t);

    // The finalizer of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number
    // generators", OOPSLA 2014): marks that differ in one bit produce unrelated words.
    std::uint64_t word_at(std::size_t at) const noexcept {
        std::uint64_t word = mark_ * 0x9e3779b97f4a7c15U + at;
        word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9U;
        word = (word ^ word >> 27) * 0x94d049bb133111ebU;
        return word ^ word >> 31;
    }

    template <class Function>
    void for_each_word(std::size_t bytes, Function function) const {
        const std::size_t all = bytes < whole_bytes ? bytes : whole_bytes;
        const auto word = [&](std::size_t at) {
            function(at, bytes - at < word_bytes ? bytes - at : word_bytes);
        };
        // Words begin at multiples of their size, so two words are equal or do not overlap.
        for (std::size_t at = 0; at < all; at += word_bytes) word(at);
        const auto page = [&](std::size_t at) {
            word(at);
            if (at + whole_bytes <= bytes) word(at + whole_bytes - word_bytes);
        };
        std::size_t at = whole_bytes;
        for (; at < bytes && at < dense_bytes; at += whole_bytes) page(at);
        at += mark_ % sparse_pages * whole_bytes;
        for (; at < bytes; at += sparse_pages * whole_bytes) page(at);
        if (bytes > all) word((bytes - 1) / word_bytes * word_bytes);
    }

    std::uint64_t mark_;
};

/// Returns the position of the first byte that is not zero; `bytes` if all are zero.
inline std::size_t first_not_zero(const void* p, std::size_t bytes) noexcept {
    const auto* const begin = static_cast<const unsigned char*>(p);
    if (bytes == 0 || (begin[0] == 0 && std::memcmp(begin, begin + 1, bytes - 1) == 0))
        return bytes;
    std::size_t at = 0;
    while (begin[at] == 0) ++at;
    return at;
}

}  // namespace tensorpool::testing
