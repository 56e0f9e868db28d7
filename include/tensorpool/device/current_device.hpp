#pragma once

/// @file
/// The current device of a thread: the one used where a call names none.

#include <tensorpool/device/device.hpp>

namespace tensorpool {

/// Returns the calling thread's current device.
///
/// A thread that set none gets the first CUDA device if a runtime of a CUDA device exists,
/// otherwise the first simulated device if `set_backend` made one available, otherwise the CPU. So
/// the call never loads CUDA's driver, and the answer changes when the program first requests a
/// runtime of CUDA. A device that was set and removed since counts as not set. Throws
/// std::bad_alloc.
TENSORPOOL_API Device current_device();
/// Sets the calling thread's current device. Throws std::invalid_argument, listing the devices, for
/// a device that does not exist.
TENSORPOOL_API void set_current_device(Device device);

/// Sets the calling thread's current device for a scope, and restores the previous one at its end.
class TENSORPOOL_API CurrentDeviceScope {
public:
    /// Sets the current device. Throws std::invalid_argument, listing the devices, for a device
    /// that does not exist.
    explicit CurrentDeviceScope(Device device);
    /// Restores the previous current device.
    ~CurrentDeviceScope();
    CurrentDeviceScope(const CurrentDeviceScope&) = delete;
    CurrentDeviceScope& operator=(const CurrentDeviceScope&) = delete;

private:
    Device before_;
    bool was_set_;  // the program had set it
};

}  // namespace tensorpool
