#pragma once

/// @file
/// The device that a thread works with where it names none.

#include <tensorpool/device/device.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

/// The calling thread's. A thread that set none gets one at the first question: the first CUDA
/// device, else the first simulated one, else the CPU; so does one whose device was taken out since
/// (`set_backend`). Throws std::bad_alloc.
TENSORPOOL_API Device current_device();
/// Throws std::invalid_argument, naming what there is, for a device that is not there.
TENSORPOOL_API void set_current_device(Device device);

/// Another current device for a scope; then the one before it again.
class TENSORPOOL_API CurrentDeviceScope {
public:
    /// Throws as `set_current_device`.
    explicit CurrentDeviceScope(Device device);
    ~CurrentDeviceScope();
    CurrentDeviceScope(const CurrentDeviceScope&) = delete;
    CurrentDeviceScope& operator=(const CurrentDeviceScope&) = delete;

private:
    Device before_;
    bool was_set_;  // by the program
};

}  // namespace tensorpool
