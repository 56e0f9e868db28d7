#pragma once

#include <tensorpool/device/memory_shape.hpp>

namespace tensorpool::device {

/// Throws std::invalid_argument if `bytes` bytes of memory are too few for a tensor of this shape,
/// or if the shape is invalid. An empty shape is always accepted.
void check_shape(const MemoryShape& shape, std::size_t bytes);

}  // namespace tensorpool::device
