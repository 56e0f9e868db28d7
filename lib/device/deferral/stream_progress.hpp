#pragma once

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// Whether work is done, from the device's answer about an event behind it or about its stream.
/// Memory that waits for streams is free when the device reports that the work is done, or that the
/// device is lost, because no work runs any more then. After any other error nothing is known: the
/// memory stays held back until the stream or the allocator is destroyed.
constexpr bool is_done(DeviceStatus status) noexcept {
    return status == DeviceStatus::ok || status == DeviceStatus::device_lost;
}

/// Whether the stream is being captured into a graph. Such a stream may not be queried, and an
/// event recorded on it would become part of the graph.
inline bool is_captured(Backend& backend, int device, StreamHandle stream) noexcept {
    CaptureState state;
    return backend.capture_state(device, stream, state) == DeviceStatus::ok && state.capturing;
}

}  // namespace tensorpool::device
