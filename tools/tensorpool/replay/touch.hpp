#pragma once

/// @file
/// What is done with a block between the calls.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace tensorpool::command::replay {

enum class Touch : std::uint8_t {
    none,   ///< nothing: the memory never comes to be
    first,  ///< one byte in each page that it lies on
    all,    ///< every byte
    check,  ///< every byte, to be looked at again before the block is freed or resized
};

inline constexpr std::uintptr_t touched_page_bytes = 4096;

/// One byte in each page.
inline void touch_pages(std::byte* block, std::uint64_t bytes) noexcept {
    auto* volatile_block = static_cast<volatile std::byte*>(block);
    volatile_block[0] = std::byte{1};
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    std::uint64_t next = touched_page_bytes - address % touched_page_bytes;
    for (; next < bytes; next += touched_page_bytes) volatile_block[next] = std::byte{1};
}

/// Bytes that no other block has at that time: from its slot, which is its own while it lives.
constexpr std::uint64_t pattern(std::uint32_t slot, std::uint64_t index) noexcept {
    const std::uint64_t mixed = (std::uint64_t{slot} << 32 ^ index) * 0x9e3779b97f4a7c15;
    return mixed ^ mixed >> 29;
}

inline void fill(std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        std::memcpy(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word);
    }
}

/// Whether the first `bytes` are as `fill` left them.
inline bool is_filled(const std::byte* block, std::uint64_t bytes, std::uint32_t slot) noexcept {
    for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
        const std::uint64_t word = pattern(slot, at);
        if (std::memcmp(block + at, &word, bytes - at < sizeof word ? bytes - at : sizeof word)) {
            return false;
        }
    }
    return true;
}

}  // namespace tensorpool::command::replay
