#pragma once

/// @file
/// The view of device memory as a tensor.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The shape of a tensor in device memory.
struct MemoryShape {
    /// The number of elements along each dimension; empty for one element.
    std::vector<std::int64_t> extents;
    /// The size of an element; 0 if there is no shape.
    std::size_t element_bytes = 0;

    /// Returns whether two shapes are equal.
    friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};

/// Returns the bytes of a tensor of this shape without gaps. Throws std::invalid_argument, naming
/// what was found, for a negative extent, elements of 0 bytes, and a product that overflows.
TENSORPOOL_API std::size_t bytes_of(const MemoryShape& shape);

}  // namespace tensorpool
