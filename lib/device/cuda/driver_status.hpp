#pragma once

#include <tensorpool/device/device_status.hpp>

#include "device/cuda/driver_types.hpp"

namespace tensorpool::device::cuda {

/// What a result of the driver means to who uses a backend. Results without a meaning of their own
/// are `failed`.
DeviceStatus status_of(Result result) noexcept;

}  // namespace tensorpool::device::cuda
