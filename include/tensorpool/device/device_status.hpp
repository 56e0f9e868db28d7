#pragma once

/// @file
/// The result of a call to a device, and the exception for failed calls.

#include <cstdint>
#include <stdexcept>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The result of a call to a device.
enum class DeviceStatus : std::uint8_t {
    /// The call succeeded.
    ok,
    /// A query found work under way. This is no failure.
    not_ready,
    /// The device has not enough memory, or for pinned memory the system.
    out_of_memory,
    /// The backend has no such function.
    not_supported,
    /// A device, handle, address or size is unknown to the backend.
    invalid_argument,
    /// The call is not allowed while a stream is captured.
    in_capture,
    /// The device does not respond any more; all further calls fail.
    device_lost,
    /// The call failed for another reason.
    failed,
};

/// Returns the result as text, such as "ok" or "out of memory"; "?" for an unknown value.
TENSORPOOL_API const char* to_string(DeviceStatus status) noexcept;

/// The exception for a failed call other than a request for memory (see
/// device_allocation_error.hpp). Its text names the call, the device, the result and the backend's
/// details.
class TENSORPOOL_API DeviceError : public std::runtime_error {
public:
    /// Makes the error from the call's result and a text.
    DeviceError(DeviceStatus status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    ~DeviceError() override;

    /// Returns the call's result.
    DeviceStatus status() const noexcept { return status_; }

private:
    DeviceStatus status_;
};

}  // namespace tensorpool
