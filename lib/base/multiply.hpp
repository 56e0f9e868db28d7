#pragma once

#include <cstddef>
#include <limits>

namespace tensorpool::base {

/// Stores `one * other` in `product`. Returns false, and leaves `product` unchanged, if the product
/// does not fit.
[[nodiscard]] constexpr bool multiply(std::size_t one, std::size_t other,
                                      std::size_t& product) noexcept {
    if (other != 0 && one > std::numeric_limits<std::size_t>::max() / other) return false;
    product = one * other;
    return true;
}

}  // namespace tensorpool::base
