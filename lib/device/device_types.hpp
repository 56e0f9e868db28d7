#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <optional>
#include <string_view>

#include <tensorpool/device/device.hpp>
#include <tensorpool/memory_source.hpp>

#include "base/never_destroyed.hpp"

namespace tensorpool::device {

inline bool is_letter(char c) noexcept {
    return c >= 'a' && c <= 'z';
}

inline bool is_name(std::string_view name) noexcept {
    const auto may_occur = [](char c) {
        return is_letter(c) || (c >= '0' && c <= '9') || c == '_';
    };
    return !name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), may_occur);
}

[[noreturn]] inline void refuse_name(std::string_view name, const std::string& expected) {
    throw std::invalid_argument("tensorpool: register_device_type: found the name \"" +
                                std::string(name) + "\", expected " + expected);
}

/// The names of device types. Types are added and never removed. Any thread.
class DeviceTypes {
public:
    /// Adds a type. Throws std::invalid_argument if the name is known already or not 1 to 10
    /// letters from a to z, digits and underscores that begin with a letter, and std::length_error
    /// if there are too many types.
    DeviceType add(std::string_view name) {
        const std::lock_guard guard(mutex_);
        if (name.size() > max_name_bytes || !is_name(name)) {
            refuse_name(name,
                        "1 to " + std::to_string(max_name_bytes) +
                            " letters from a to z, digits and underscores, the first a letter");
        }
        if (find(name)) refuse_name(name, "one that no type has; there are " + list());
        const std::size_t number = count_.load(std::memory_order_relaxed);
        if (number == max_device_types) {
            throw std::length_error("tensorpool: register_device_type: there are " +
                                    std::to_string(number) + " device types already");
        }
        std::copy(name.begin(), name.end(), names_[number].begin());
        count_.store(number + 1, std::memory_order_release);
        return static_cast<DeviceType>(number);
    }
    const char* name_of(DeviceType type) const noexcept {
        const auto number = static_cast<std::size_t>(type);
        return number < count_.load(std::memory_order_acquire) ? names_[number].data() : "?";
    }
    std::optional<DeviceType> find(std::string_view name) const noexcept {
        const std::size_t count = count_.load(std::memory_order_acquire);
        for (std::size_t number = 0; number < count; ++number) {
            if (name == names_[number].data()) return static_cast<DeviceType>(number);
        }
        return std::nullopt;
    }
    /// All names, such as "cpu, cuda or simulated".
    std::string list() const {
        const std::size_t count = count_.load(std::memory_order_acquire);
        std::string text;
        for (std::size_t number = 0; number < count; ++number) {
            if (number != 0) text += number + 1 == count ? " or " : ", ";
            text += names_[number].data();
        }
        return text;
    }

private:
    // With an index of up to four digits, the name of a device fits into its record.
    static constexpr std::size_t max_name_bytes = 10;
    using Name = std::array<char, max_name_bytes + 1>;

    std::mutex mutex_;  // held to add
    // Release: pairs with acquire loads, so that the names of all types are visible.
    std::atomic<std::size_t> count_ = known_device_types;
    std::array<Name, max_device_types> names_ = {{{"cpu"}, {"cuda"}, {"simulated"}}};
};

inline DeviceTypes& device_types() noexcept {
    return base::the_only<DeviceTypes>.get();
}

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
