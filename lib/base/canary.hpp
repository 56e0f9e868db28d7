#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::base {

/// Returns the offset of the first byte that is not zero, or `bytes` if all are.
inline std::size_t find_nonzero(const char* block, std::size_t bytes) noexcept {
    std::size_t at = 0;
    // The compiler turns the inner loop into a few vector instructions.
    std::uint64_t words[8];
    for (; at + sizeof words <= bytes; at += sizeof words) {
        std::memcpy(words, block + at, sizeof words);
        std::uint64_t any = 0;
        for (const std::uint64_t word : words) any |= word;
        if (any != 0) break;
    }
    return static_cast<std::size_t>(
        std::find_if(block + at, block + bytes, [](char c) { return c != 0; }) - block);
}

/// The bytes behind what was requested, which `Checks::hardened` fills when a block is allocated
/// and checks when it is freed. The pattern depends on a secret of the process and on the block's
/// address, so that a program cannot write it by chance. No byte of it is 0, so the most common
/// overrun, by the end of a string, always changes it. After StackGuard (Cowan et al., USENIX
/// Security 1998).
class Canary {
public:
    /// Every block has at least this many bytes behind what was requested.
    static constexpr std::size_t min_bytes = 8;
    /// Of more bytes, only the first are used.
    static constexpr std::size_t max_bytes = 256;

    constexpr Canary() noexcept = default;
    explicit Canary(std::uint64_t secret) noexcept : secret_(secret) {}

    /// The offset of the canary's end in a block of `usable` bytes.
    static std::size_t end(std::size_t requested, std::size_t usable) noexcept {
        return std::min(usable, requested + max_bytes);
    }
    /// Fills the bytes from `requested` on of a block of `usable` bytes.
    void fill(char* block, std::size_t requested, std::size_t usable) const noexcept {
        const std::size_t stop = end(requested, usable);
        const std::uint64_t first = word_at(block, requested);
        const std::uint64_t last = word_at(block, stop - sizeof last);
        if (stop - requested < 2 * sizeof last) {
            put(block + requested, first);
            put(block + stop - sizeof last, last);
            return;
        }
        for (std::size_t at = requested; at + sizeof(Pair) < stop; at += sizeof(Pair)) {
            put(block + at, Pair{first, first});
        }
        put(block + stop - sizeof(Pair), Pair{last, last});
    }
    /// Returns the offset of the first damaged byte, or `usable` if there is none.
    std::size_t find_damage(const char* block, std::size_t requested,
                            std::size_t usable) const noexcept {
        const std::size_t stop = end(requested, usable);
        const std::uint64_t first = word_at(block, requested);
        const std::uint64_t last = word_at(block, stop - sizeof last);
        std::uint64_t damage =
            (get(block + requested) ^ first) | (get(block + stop - sizeof last) ^ last);
        for (std::size_t at = requested; at + sizeof(Pair) < stop; at += sizeof(Pair)) {
            damage |= (get(block + at) ^ first) | (get(block + at + sizeof first) ^ first);
        }
        if (stop - requested >= sizeof(Pair)) damage |= get(block + stop - sizeof(Pair)) ^ last;
        if (damage == 0) [[likely]]
            return usable;
        std::size_t at = requested;
        while (has_first_byte_of(word_at(block, at), block + at)) ++at;
        return at;
    }

private:
    // Written at once, by a vector instruction where there is one.
    struct Pair {
        std::uint64_t first;
        std::uint64_t second;
    };

    // The word of the pattern at an offset. Words that overlap agree in the bytes that they share.
    std::uint64_t word_at(const char* block, std::size_t at) const noexcept {
        constexpr std::uint64_t no_byte_is_zero = 0x0101010101010101;
        // The product spreads the bits in which addresses differ.
        const std::uint64_t mixed =
            reinterpret_cast<std::uintptr_t>(block) * std::uint64_t{0x9E3779B97F4A7C15};
        const std::uint64_t word = (secret_ ^ mixed) | no_byte_is_zero;
        const auto bits = static_cast<int>(at % sizeof word * 8);
        return std::endian::native == std::endian::little ? std::rotr(word, bits)
                                                          : std::rotl(word, bits);
    }
    static bool has_first_byte_of(std::uint64_t word, const char* byte) noexcept {
        return std::memcmp(byte, &word, 1) == 0;
    }
    template <class Words>
    static void put(char* to, Words words) noexcept {
        std::memcpy(to, &words, sizeof words);
    }
    static std::uint64_t get(const char* from) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, from, sizeof word);
        return word;
    }

    std::uint64_t secret_ = 0;
};

}  // namespace tensorpool::base
