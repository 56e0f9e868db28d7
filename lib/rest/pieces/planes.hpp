#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "rest/pieces/element_layout.hpp"

namespace tensorpool::stashing {

/// The planes of a piece that are read: one pointer for each.
using PlanePointers = std::array<const std::byte*, max_planes>;

/// Splits `count` elements at `from` into planes of `count` bytes, which lie one after another at
/// `to`. REQUIRES: a layout with more than one plane.
void split_planes(const std::byte* from, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept;
/// Reverses `split_planes`. The planes may lie anywhere.
void merge_planes(const PlanePointers& planes, std::size_t count, const ElementLayout& layout,
                  std::byte* to) noexcept;

}  // namespace tensorpool::stashing
