#pragma once

/// @file
/// The identity of a device.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A type of devices; each has one backend. Further types are registered by their vendors
/// (`register_device_type` in runtimes.hpp) and have numbers from `known_device_types` on.
enum class DeviceType : std::uint8_t {
    /// The host's processors.
    cpu,
    /// NVIDIA's devices.
    cuda,
    /// Simulated devices; see simulated_backend.hpp.
    simulated,
};
/// The number of device types that need no registration.
inline constexpr std::size_t known_device_types = 3;
/// The largest number of device types.
inline constexpr std::size_t max_device_types = 16;

/// A device. Indices count from 0 within a type; there is one CPU.
struct Device {
    /// The device's type.
    DeviceType type = DeviceType::cpu;
    /// The device's index within its type.
    int index = 0;

    /// Orders devices by type, then by index.
    friend constexpr auto operator<=>(const Device&, const Device&) = default;
};

/// Returns "cpu", "cuda", "simulated" or the name that was registered; "?" for an unknown value.
TENSORPOOL_API const char* to_string(DeviceType type) noexcept;
/// Returns the device as text, such as "cuda:0"; the CPU is "cpu:0".
TENSORPOOL_API std::string to_string(Device device);
/// Returns the device that a text names: "cuda:1", or "cuda" for index 0. Throws
/// std::invalid_argument, naming what was found, for any other text.
TENSORPOOL_API Device parse_device(const std::string& text);

}  // namespace tensorpool

/// Hashes a device.
template <>
struct std::hash<tensorpool::Device> {
    /// Returns the hash of a device.
    std::size_t operator()(const tensorpool::Device& device) const noexcept {
        return static_cast<std::size_t>(device.type) << 24 ^ static_cast<std::size_t>(device.index);
    }
};
