#pragma once

/// @file
/// The view of device memory as a tensor.

#include <cstddef>
#include <vector>

#include <tensorpool/data_type.hpp>

namespace tensorpool {

/// The shape of a tensor in device memory.
struct MemoryShape {
    /// The number of elements along each dimension; empty for one element.
    std::vector<std::int64_t> extents;
    /// The size of an element; 0 if there is no shape, or if `type` determines it.
    std::size_t element_bytes = 0;
    /// How the elements are stored; no type if only their size is known.
    DataType type = {};

    /// Returns whether two shapes are equal.
    friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};

/// Returns the bytes of a tensor of this shape without gaps: by `type` if it has one (see
/// tensor_bytes), otherwise by `element_bytes`. Throws std::invalid_argument, naming what was
/// found, for a negative extent, elements of 0 bytes, a product that overflows, elements that do
/// not fill whole blocks of the type, and `element_bytes` that are not those of the type.
TENSORPOOL_API std::size_t bytes_of(const MemoryShape& shape);

}  // namespace tensorpool
