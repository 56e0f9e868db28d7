#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tensorpool/model_file.hpp>

namespace tensorpool::files {

/// More than any library that writes these files allows (NumPy and PyTorch allow 64).
inline constexpr std::size_t max_dimensions = 64;

/// The shapes of many tensors in a few pieces of memory. Shapes that were added never move.
class Shapes {
public:
    std::span<const std::uint64_t> add(std::span<const std::uint64_t> shape) {
        if (pieces_.empty() || pieces_.back().capacity() - pieces_.back().size() < shape.size()) {
            grow(shape.size());
        }
        std::vector<std::uint64_t>& piece = pieces_.back();
        const std::size_t begin = piece.size();
        piece.insert(piece.end(), shape.begin(), shape.end());
        return std::span(piece).subspan(begin);
    }

private:
    void grow(std::size_t at_least) {
        const std::size_t last = pieces_.empty() ? 32 : pieces_.back().capacity();
        pieces_.emplace_back().reserve(std::max(2 * last, at_least));
    }

    std::vector<std::vector<std::uint64_t>> pieces_;
};

/// Returns the product of the dimensions. Returns nothing if the product, with zeros left out,
/// exceeds 2^63 - 1: strides are signed everywhere.
std::optional<std::uint64_t> count_elements(std::span<const std::uint64_t> shape) noexcept;

/// Returns the bytes of `elements` elements; nothing if they exceed 2^63 - 1. REQUIRES: `elements`
/// is a multiple of the type's block.
std::optional<std::uint64_t> count_bytes(std::uint64_t elements, const ElementType& type) noexcept;

}  // namespace tensorpool::files
