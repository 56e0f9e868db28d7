#include <tensorpool/device/device.hpp>

#include <charconv>
#include <stdexcept>
#include <string_view>

namespace tensorpool {

const char* to_string(DeviceType type) noexcept {
    switch (type) {
        case DeviceType::cpu:
            return "cpu";
        case DeviceType::cuda:
            return "cuda";
        case DeviceType::simulated:
            return "simulated";
    }
    return "?";
}

std::string to_string(Device device) {
    return std::string(to_string(device.type)) + ':' + std::to_string(device.index);
}

Device parse_device(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string_view type = std::string_view(text).substr(0, colon);
    for (std::size_t number = 0; number < device_type_count; ++number) {
        Device device = {static_cast<DeviceType>(number), 0};
        if (type != to_string(device.type)) continue;
        if (colon == std::string::npos) return device;
        const char* const end = text.data() + text.size();
        const char* const digits = text.data() + colon + 1;
        const auto [rest, error] = std::from_chars(digits, end, device.index);
        if (error == std::errc() && rest == end && device.index >= 0) return device;
    }
    throw std::invalid_argument("tensorpool: \"" + text +
                                "\" is not a device: expected cpu, cuda or simulated, optionally "
                                "followed by a colon and an index, such as cuda:1");
}

}  // namespace tensorpool
