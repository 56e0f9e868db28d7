#pragma once

#include <tensorpool/device/device.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool::device {

/// The numbers of DLPack's DLDeviceType. The library does not need DLPack's header.
struct DlpackDeviceType {
    static constexpr std::int32_t cpu = 1;
    static constexpr std::int32_t cuda = 2;
    static constexpr std::int32_t cuda_host = 3;
    static constexpr std::int32_t extension = 12;
    static constexpr std::int32_t cuda_managed = 13;
};

/// Returns the device's own memory as DLPack describes it.
inline SourceDevice dlpack_device(Device device) noexcept {
    switch (device.type) {
        case DeviceType::cpu:
            return {DlpackDeviceType::cpu, 0};
        case DeviceType::cuda:
            return {DlpackDeviceType::cuda, device.index};
        case DeviceType::simulated:
            break;
    }
    return {DlpackDeviceType::extension, device.index};
}

}  // namespace tensorpool::device
