#pragma once

/// @file
/// Saturating sums and products for values from files: a result that does not fit is the largest
/// number, which no memory has room for.

#include <cstdint>
#include <limits>

namespace tensorpool::detail {

/// The largest number.
inline constexpr std::uint64_t max_number = std::numeric_limits<std::uint64_t>::max();

/// Returns the sum of two numbers, or the largest number.
constexpr std::uint64_t sum(std::uint64_t one, std::uint64_t other) noexcept {
    return one > max_number - other ? max_number : one + other;
}

/// Returns the product of two numbers, or the largest number.
constexpr std::uint64_t product(std::uint64_t one, std::uint64_t other) noexcept {
    if (one == 0 || other == 0) return 0;
    return one > max_number / other ? max_number : one * other;
}

/// Returns the sum of all numbers, or the largest number.
template <class... Numbers>
constexpr std::uint64_t sum(std::uint64_t one, std::uint64_t other, Numbers... more) noexcept {
    return sum(sum(one, other), more...);
}

/// Returns the product of all numbers, or the largest number.
template <class... Numbers>
constexpr std::uint64_t product(std::uint64_t one, std::uint64_t other, Numbers... more) noexcept {
    return product(product(one, other), more...);
}

/// Returns the next multiple, or the largest number.
constexpr std::uint64_t round_up(std::uint64_t number, std::uint64_t multiple) noexcept {
    const std::uint64_t rest = number % multiple;
    return rest == 0 ? number : sum(number, multiple - rest);
}

}  // namespace tensorpool::detail
