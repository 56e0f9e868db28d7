#pragma once

#include <algorithm>
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

}  // namespace tensorpool::base
