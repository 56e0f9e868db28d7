#pragma once

#include <tensorpool/device/current_device.hpp>
#include <tensorpool/device/runtimes.hpp>

#include "device/runtime/runtime_core.hpp"

/// The backend of each device type, and the runtimes made so far: what other sources need besides
/// the functions of runtimes.hpp. All throw std::bad_alloc if there is no memory for the registry.
namespace tensorpool::device {

/// Returns nullptr if the runtime was not made yet, or for devices beyond the first 16 of a type.
Runtime* runtime_if_made(Device device);
/// Whether a runtime of this type was made. Makes no call to a backend.
bool has_runtime(DeviceType type);
/// Throws std::invalid_argument if `get_runtime` does not return this runtime.
void check_known(const Runtime& runtime);
/// Throws std::invalid_argument if there is no such device.
void check_device(Device device);

}  // namespace tensorpool::device
