#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace tensorpool::base {

/// Rounds `value` up to a multiple of `alignment`, a power of two. REQUIRES: the result fits in
/// std::size_t.
constexpr std::size_t align_up(std::size_t value, std::size_t alignment) noexcept {
    return (value + alignment - 1) & ~(alignment - 1);
}

constexpr std::size_t align_down(std::size_t value, std::size_t alignment) noexcept {
    return value & ~(alignment - 1);
}

constexpr bool is_aligned(std::size_t value, std::size_t alignment) noexcept {
    return (value & (alignment - 1)) == 0;
}

inline bool is_aligned(const void* p, std::size_t alignment) noexcept {
    return is_aligned(reinterpret_cast<std::uintptr_t>(p), alignment);
}

constexpr std::size_t ceil_divide(std::size_t value, std::size_t by) noexcept {
    return value / by + (value % by != 0 ? 1 : 0);
}

/// Stores `one * other` in `product`. Returns false, and leaves `product` unchanged, if the product
/// does not fit.
[[nodiscard]] constexpr bool multiply(std::size_t one, std::size_t other,
                                      std::size_t& product) noexcept {
    if (other != 0 && one > std::numeric_limits<std::size_t>::max() / other) return false;
    product = one * other;
    return true;
}

}  // namespace tensorpool::base
