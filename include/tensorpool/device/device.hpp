#pragma once

/// @file
/// Which device something lies on.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// A kind of device; each has one backend.
enum class DeviceType : std::uint8_t {
    cpu,
    cuda,
    simulated,  ///< see simulated_backend.hpp
};
inline constexpr std::size_t device_type_count = 3;

/// One device. Indices count from 0 within a type; there is one CPU.
struct Device {
    DeviceType type = DeviceType::cpu;
    int index = 0;

    friend constexpr auto operator<=>(const Device&, const Device&) = default;
};

/// "cpu", "cuda", "simulated"; "?" for none of them.
TENSORPOOL_API const char* to_string(DeviceType type) noexcept;
/// "cuda:0"; the CPU's is "cpu:0".
TENSORPOOL_API std::string to_string(Device device);
/// The other way: "cuda:1", or "cuda" for index 0. Throws std::invalid_argument, naming what was
/// found, for anything else.
TENSORPOOL_API Device parse_device(const std::string& text);

}  // namespace tensorpool

template <>
struct std::hash<tensorpool::Device> {
    std::size_t operator()(const tensorpool::Device& device) const noexcept {
        return static_cast<std::size_t>(device.type) << 24 ^ static_cast<std::size_t>(device.index);
    }
};
