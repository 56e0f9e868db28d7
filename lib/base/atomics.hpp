#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::base {

/// Returns the value of a word. Relaxed: the word orders no other memory access.
inline std::uint64_t read(const std::atomic<std::uint64_t>& word) noexcept {
    return word.load(std::memory_order_relaxed);
}

/// Sets the value of a word. Relaxed: the word orders no other memory access.
inline void write(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    word.store(value, std::memory_order_relaxed);
}

/// Raises `highest` to `value` if it is lower. Relaxed: the mark orders no other memory access.
inline void raise_to(std::atomic<std::uint64_t>& highest, std::uint64_t value) noexcept {
    std::uint64_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

/// Lowers `lowest` to `value` if it is higher. Relaxed: the mark orders no other memory access.
inline void lower_to(std::atomic<std::uint64_t>& lowest, std::uint64_t value) noexcept {
    std::uint64_t seen = lowest.load(std::memory_order_relaxed);
    while (seen > value && !lowest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

}  // namespace tensorpool::base
