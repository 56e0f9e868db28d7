#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

/// Relaxed: each counter is independent of the others.
inline std::uint64_t read(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

/// Reads a counter that must not be seen before the counter that includes it. Pairs with
/// `add_release`.
inline std::uint64_t read_first(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

/// Returns `a - b`, or 0 if `b` is larger.
inline std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

}  // namespace tensorpool::statistics
