#include "device/runtime/check_status.hpp"

namespace tensorpool::device {

void throw_status(DeviceStatus status, const std::string& call, Device device, Backend& backend) {
    std::string text =
        "tensorpool: " + call + " on " + to_string(device) + ": " + to_string(status);
    const std::string reason = backend.last_error();
    if (!reason.empty()) text += ": " + reason;
    throw DeviceError(status, text);
}

}  // namespace tensorpool::device
