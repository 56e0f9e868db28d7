#pragma once

#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

#include <tensorpool/device/device.hpp>
#include <tensorpool/memory_source.hpp>

namespace tensorpool::device {

/// The names of device types. Types are added and never removed. Any thread.
class DeviceTypes {
public:
    /// Adds a type. Throws std::invalid_argument if the name is known already or not 1 to 10
    /// letters from a to z, digits and underscores that begin with a letter, and std::length_error
    /// if there are too many types.
    DeviceType add(std::string_view name);
    const char* name_of(DeviceType type) const noexcept;
    std::optional<DeviceType> find(std::string_view name) const noexcept;
    /// All names, such as "cpu, cuda or simulated".
    std::string list() const;

private:
    // With an index of up to four digits, the name of a device fits into its record.
    static constexpr std::size_t max_name_bytes = 10;
    using Name = std::array<char, max_name_bytes + 1>;

    std::mutex mutex_;  // held to add
    // Release: pairs with acquire loads, so that the names of all types are visible.
    std::atomic<std::size_t> count_ = known_device_types;
    std::array<Name, max_device_types> names_ = {{{"cpu"}, {"cuda"}, {"simulated"}}};
};

DeviceTypes& device_types() noexcept;

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
