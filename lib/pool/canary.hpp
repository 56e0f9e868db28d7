#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::detail {
inline namespace abi_2 {

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
        const std::size_t last = end(requested, usable) - sizeof(std::uint64_t);
        const std::uint64_t word = word_at(block, requested);
        for (std::size_t at = requested; at < last; at += sizeof word) put(block + at, word);
        put(block + last, word_at(block, last));
    }
    /// Returns the offset of the first damaged byte, or `usable` if there is none.
    std::size_t find_damage(const char* block, std::size_t requested,
                            std::size_t usable) const noexcept {
        const std::size_t last = end(requested, usable) - sizeof(std::uint64_t);
        const std::uint64_t word = word_at(block, requested);
        std::uint64_t damage = get(block + last) ^ word_at(block, last);
        for (std::size_t at = requested; at < last; at += sizeof word) {
            damage |= get(block + at) ^ word;
        }
        if (damage == 0) [[likely]]
            return usable;
        std::size_t at = requested;
        while (has_first_byte_of(word_at(block, at), block + at)) ++at;
        return at;
    }

private:
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
    static void put(char* to, std::uint64_t word) noexcept { std::memcpy(to, &word, sizeof word); }
    static std::uint64_t get(const char* from) noexcept {
        std::uint64_t word = 0;
        std::memcpy(&word, from, sizeof word);
        return word;
    }

    std::uint64_t secret_ = 0;
};

}  // namespace abi_2
}  // namespace tensorpool::detail
