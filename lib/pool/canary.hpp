#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::detail {
inline namespace abi_2 {

/// The bytes behind what was requested, which `Checks::hardened` fills when a block is allocated
/// and checks when it is freed. The pattern depends on a secret of the process and on the block's
/// address, so that a program cannot write it by chance. After StackGuard (Cowan et al., USENIX
/// Security 1998).
class Canary {
public:
    /// Every block has at least this many bytes behind what was requested.
    static constexpr std::size_t min_bytes = 8;
    /// Of more bytes, only the first are used.
    static constexpr std::size_t max_bytes = 256;

    constexpr Canary() noexcept = default;
    explicit Canary(std::uint64_t secret) noexcept : secret_(secret) {}

    /// Fills the bytes from `requested` on of a block of `usable` bytes.
    void fill(char* block, std::size_t requested, std::size_t usable) const noexcept {
        for_each_word(block, requested, usable, [](char* at, std::uint64_t word, std::size_t n) {
            std::memcpy(at, &word, n);
            return true;
        });
    }
    /// Returns the offset of the first damaged part, or `usable` if there is none.
    std::size_t find_damage(const char* block, std::size_t requested,
                            std::size_t usable) const noexcept {
        std::size_t damaged = usable;
        for_each_word(block, requested, usable,
                      [&](const char* at, std::uint64_t word, std::size_t n) {
                          char expected[sizeof word];
                          std::memcpy(expected, &word, sizeof word);
                          const char* const found = std::mismatch(at, at + n, expected).first;
                          if (found == at + n) return true;
                          damaged = static_cast<std::size_t>(found - block);
                          return false;
                      });
        return damaged;
    }

private:
    template <class Byte, class Function>
    void for_each_word(Byte* block, std::size_t requested, std::size_t usable,
                       Function function) const noexcept {
        const std::size_t end = std::min(usable, requested + max_bytes);
        const std::uint64_t word = secret_ ^ reinterpret_cast<std::uintptr_t>(block);
        for (std::size_t at = requested; at < end; at += sizeof word) {
            if (!function(block + at, word, std::min(sizeof word, end - at))) return;
        }
    }

    std::uint64_t secret_ = 0;
};

}  // namespace abi_2
}  // namespace tensorpool::detail
