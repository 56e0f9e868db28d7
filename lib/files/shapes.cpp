#include "files/shapes.hpp"

#include <limits>

namespace tensorpool::files {
namespace {

constexpr auto max_count = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());

std::optional<std::uint64_t> product(std::uint64_t one, std::uint64_t other) noexcept {
    if (other != 0 && one > max_count / other) return std::nullopt;
    return one * other;
}

}  // namespace

std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept {
    std::uint64_t elements = 1;
    bool empty = false;
    for (const std::uint64_t dimension : shape) {
        empty = empty || dimension == 0;
        const auto more = product(elements, std::max<std::uint64_t>(dimension, 1));
        if (!more) return std::nullopt;
        elements = *more;
    }
    return empty ? 0 : elements;
}

std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const ElementType& type) noexcept {
    return product(elements / type.block_elements, type.block_bytes);
}

}  // namespace tensorpool::files
