#pragma once

/// @file
/// How a caller sees a device's memory as a tensor.

#include <cstddef>
#include <cstdint>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

struct MemoryShape {
    std::vector<std::int64_t> extents;  ///< elements along each dimension; none: one element
    std::size_t element_bytes = 0;      ///< 0: there is no shape

    friend bool operator==(const MemoryShape&, const MemoryShape&) = default;
};

/// Bytes of a tensor of this shape without gaps. Throws std::invalid_argument, naming what was
/// found, for an extent below 0, elements of 0 bytes, and where the product does not fit.
TENSORPOOL_API std::size_t bytes_of(const MemoryShape& shape);

}  // namespace tensorpool
