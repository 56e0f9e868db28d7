#pragma once

/// @file
/// How a replay writes into its blocks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::command::replay {

enum class Touch : std::uint8_t {
    none,   ///< nothing is written, so that no page becomes resident
    first,  ///< one byte in each page of the block
    all,    ///< every byte
    check,  ///< every byte, verified before the block is freed or resized
};

inline constexpr std::uintptr_t touched_page_bytes = 4096;

/// Writes one byte in each page of a block. Requires: `bytes` is above 0.
inline void touch_pages(std::byte* block, std::uint64_t bytes) noexcept {
    auto* volatile_block = static_cast<volatile std::byte*>(block);
    volatile_block[0] = std::byte{1};
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    std::uint64_t next = touched_page_bytes - address % touched_page_bytes;
    for (; next < bytes; next += touched_page_bytes) volatile_block[next] = std::byte{1};
}

/// Returns a pattern that depends on the slot of a block, so that blocks alive at the same time
/// have different contents.
constexpr std::uint64_t pattern(std::uint32_t slot, std::uint64_t index) noexcept {
    const std::uint64_t mixed = (std::uint64_t{slot} << 32 ^ index) * 0x9e3779b97f4a7c15;
    return mixed ^ mixed >> 29;
}

/// Fills a block with the pattern of its slot.
inline void fill(std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        std::memcpy(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

/// Returns whether the first `bytes` bytes are as `fill` wrote them.
inline bool is_filled(const std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        const std::size_t compared = std::min<std::uint64_t>(bytes - at, sizeof word);
        if (std::memcmp(block + at, &word, compared) != 0) {
            return false;
        }
    }
    return true;
}

}  // namespace tensorpool::command::replay
