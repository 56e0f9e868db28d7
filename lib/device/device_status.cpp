#include <tensorpool/device/device_status.hpp>

namespace tensorpool {

DeviceError::~DeviceError() = default;

const char* to_string(DeviceStatus status) noexcept {
    switch (status) {
        case DeviceStatus::ok:
            return "ok";
        case DeviceStatus::not_ready:
            return "not ready";
        case DeviceStatus::out_of_memory:
            return "out of memory";
        case DeviceStatus::not_supported:
            return "not supported";
        case DeviceStatus::invalid_argument:
            return "invalid argument";
        case DeviceStatus::in_capture:
            return "not allowed during capture";
        case DeviceStatus::device_lost:
            return "device lost";
        case DeviceStatus::failed:
            return "failed";
    }
    return "?";
}

}  // namespace tensorpool
