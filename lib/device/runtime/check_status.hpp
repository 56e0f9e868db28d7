#pragma once

#include <string>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/device/device_status.hpp>

namespace tensorpool::device {

/// Throws DeviceError with the call, the device, the status, and the backend's text, such as
/// "tensorpool: fill of 64 bytes on cuda:1: device lost: ...".
[[noreturn]] void throw_status(DeviceStatus status, const std::string& call, Device device,
                               Backend& backend);

/// Throws DeviceError unless `status` is ok.
inline void check_status(DeviceStatus status, const char* call, Device device, Backend& backend) {
    if (status != DeviceStatus::ok) [[unlikely]]
        throw_status(status, call, device, backend);
}

}  // namespace tensorpool::device
