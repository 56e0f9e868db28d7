#pragma once

#include <tensorpool/device/device_status.hpp>

namespace tensorpool::device {

/// Whether work is done, from the device's answer about an event behind it or about its stream.
/// Memory that waits for streams is free when the device reports that the work is done, or that the
/// device is lost, because no work runs any more then. After any other error nothing is known: the
/// memory stays held back until the stream or the allocator is destroyed.
constexpr bool is_done(DeviceStatus status) noexcept {
    return status == DeviceStatus::ok || status == DeviceStatus::device_lost;
}

}  // namespace tensorpool::device
