#pragma once

#include <cstddef>

#include <tensorpool/device/memory_shape.hpp>

namespace tensorpool::device {

/// Throws std::invalid_argument unless memory of so many bytes holds a tensor of this shape, or
/// there is no shape.
void check_shape(const MemoryShape& shape, std::size_t bytes);

}  // namespace tensorpool::device
