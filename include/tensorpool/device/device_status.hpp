#pragma once

/// @file
/// What a call to a device came to, and what is thrown where it failed.

#include <cstdint>
#include <stdexcept>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

enum class DeviceStatus : std::uint8_t {
    ok,
    not_ready,         ///< of a query: work is still under way. No failure
    out_of_memory,     ///< the device, or the system for pinned memory, has not so much
    not_supported,     ///< the backend has no such function
    invalid_argument,  ///< a device, handle, address or size that the backend does not know
    in_capture,        ///< the call may not be made while a stream is captured
    device_lost,       ///< the device does not answer any more, whatever is asked from now on
    failed,            ///< anything else
};

/// "ok", "out of memory" and so on; "?" for none.
TENSORPOOL_API const char* to_string(DeviceStatus status) noexcept;

/// A call that failed, other than a request for memory (see device_allocation_error.hpp). The
/// text tells which call, on which device, what came of it and what the backend says.
class TENSORPOOL_API DeviceError : public std::runtime_error {
public:
    DeviceError(DeviceStatus status, const std::string& text)
        : std::runtime_error(text), status_(status) {}
    ~DeviceError() override;

    DeviceStatus status() const noexcept { return status_; }

private:
    DeviceStatus status_;
};

}  // namespace tensorpool
