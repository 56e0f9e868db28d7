#pragma once

/// @file
/// The current stream of a thread on a device: the one used where a call names none.

#include <tensorpool/device/device_stream.hpp>

namespace tensorpool {

/// Sets the calling thread's current stream of one device for a scope, and restores the previous
/// one at its end. Outside every scope it is the device's default stream.
///
/// The current device and the current streams of other devices stay. Scopes of one thread end in
/// the reverse order of their beginning. REQUIRES: the stream exists until the end of the scope.
class TENSORPOOL_API CurrentStreamScope {
public:
    /// Makes a stream the current one of its device.
    explicit CurrentStreamScope(const DeviceStream& stream) noexcept;
    /// Makes a stream of the runtime's device the current one; nullptr: the default stream.
    CurrentStreamScope(const Runtime& runtime, StreamHandle stream) noexcept;
    /// Restores the previous current stream.
    ~CurrentStreamScope();
    CurrentStreamScope(const CurrentStreamScope&) = delete;
    CurrentStreamScope& operator=(const CurrentStreamScope&) = delete;

private:
    friend class device::RuntimeCore;
    CurrentStreamScope(const device::RuntimeCore& core, StreamHandle stream) noexcept;

    const device::RuntimeCore& core_;
    const StreamHandle stream_;
    const CurrentStreamScope* const outer_;
};

}  // namespace tensorpool
