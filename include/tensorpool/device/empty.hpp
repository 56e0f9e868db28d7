#pragma once

/// @file
/// Memory for one tensor on a device.

#include <tensorpool/device/backend.hpp>
#include <tensorpool/tensor_allocation.hpp>

namespace tensorpool {

/// Allocates memory for a tensor of this shape and type on a device: from the global pool for the
/// CPU, otherwise from the allocator of the device's runtime (runtimes.hpp), for use by `stream`,
/// by default the current stream. The elements are not initialized. `shape` has the extent of each
/// dimension, the slowest first; empty means one element. Nothing is allocated if an extent is 0.
///
/// Throws std::invalid_argument, naming what was found, for a device that does not exist, a
/// negative extent, no type, elements that do not fill whole blocks of the type, and more than 2^63
/// - 1 bytes. Throws DeviceError if the device fails, and AllocationError or DeviceAllocationError
/// if the memory is unavailable.
[[nodiscard]] TENSORPOOL_API TensorAllocation empty(std::vector<std::int64_t> shape, DataType type,
                                                    Device device,
                                                    std::optional<StreamHandle> stream = {});

}  // namespace tensorpool
