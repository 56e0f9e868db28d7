#pragma once

#include <cstddef>
#include <span>

#include <tensorpool/data_type.hpp>
#include <tensorpool/memory_pool.hpp>

namespace tensorpool::stashing {

/// Returns which part of the bytes their encoding takes, by encoding a few pieces of them. 0 for no
/// bytes. Throws AllocationError if `pool` has no memory for that.
double estimate_ratio(std::span<const std::byte> bytes, const DataType& type, MemoryPool& pool);

}  // namespace tensorpool::stashing
