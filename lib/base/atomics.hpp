#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::base {

/// Raises `highest` to `value` where it is below. Relaxed: a mark of its own, which orders nothing.
inline void raise_to(std::atomic<std::uint64_t>& highest, std::uint64_t value) noexcept {
    std::uint64_t seen = highest.load(std::memory_order_relaxed);
    while (seen < value && !highest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

/// The same for the lowest.
inline void lower_to(std::atomic<std::uint64_t>& lowest, std::uint64_t value) noexcept {
    std::uint64_t seen = lowest.load(std::memory_order_relaxed);
    while (seen > value && !lowest.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
    }
}

}  // namespace tensorpool::base
