#pragma once

#include <tensorpool/device/backend.hpp>

namespace tensorpool::device {

/// Whether work is done, by what the device said of an event behind it, or of its stream. The one
/// rule for memory that waits for streams: it is free when the device says that the work is done,
/// or is lost, for then no work runs any more. After any other error nothing is known, so the
/// memory stays held back until the stream ends or the allocator does.
constexpr bool is_done(DeviceStatus status) noexcept {
    return status == DeviceStatus::ok || status == DeviceStatus::device_lost;
}

/// Whether the stream is captured into a graph. Then it may not be queried, and an event recorded
/// on it would become a part of the graph.
inline bool is_captured(Backend& backend, int device, StreamHandle stream) noexcept {
    CaptureState state;
    return backend.capture_state(device, stream, state) == DeviceStatus::ok && state.capturing;
}

}  // namespace tensorpool::device
