#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

/// Relaxed: each word is a number of its own.
inline std::uint64_t read(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

/// Of what must not be seen before what it is part of. Pairs with `add_release`.
inline std::uint64_t read_first(const detail::Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

/// `a - b`, 0 if `b` is larger.
inline std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

}  // namespace tensorpool::statistics
