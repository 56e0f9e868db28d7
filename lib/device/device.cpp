#include <tensorpool/device/device.hpp>

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "device/device_types.hpp"

namespace tensorpool {

const char* to_string(DeviceType type) noexcept {
    return device::device_types().name_of(type);
}

std::string to_string(Device device) {
    return std::string(to_string(device.type)) + ':' + std::to_string(device.index);
}

Device parse_device(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string_view type = std::string_view(text).substr(0, colon);
    if (const std::optional<DeviceType> found = device::device_types().find(type)) {
        Device device = {*found, 0};
        if (colon == std::string::npos) return device;
        const char* const end = text.data() + text.size();
        const char* const digits = text.data() + colon + 1;
        const auto [rest, error] = std::from_chars(digits, end, device.index);
        if (error == std::errc() && rest == end && device.index >= 0) return device;
    }
    throw std::invalid_argument("tensorpool: \"" + text + "\" is not a device: expected " +
                                device::device_types().list() +
                                ", optionally followed by a colon and an index, such as cuda:1");
}

}  // namespace tensorpool
