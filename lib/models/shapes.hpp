#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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

}  // namespace tensorpool::files
