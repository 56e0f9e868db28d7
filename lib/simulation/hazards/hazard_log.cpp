#include "simulation/hazards/hazard_log.hpp"

#include <algorithm>

#include <tensorpool/device/device.hpp>

namespace tensorpool::device {
namespace {

std::string text_of(StreamName stream) {
    if (stream.is_host()) return "host";
    const std::string device = to_string(Device{DeviceType::simulated, stream.device});
    if (stream.number == 0) return "default stream of " + device;
    return "stream " + std::to_string(stream.number) + " of " + device;
}

}  // namespace

std::uint32_t HazardLog::label(const std::string& text) {
    const auto [found, added] =
        numbers_.try_emplace(text, static_cast<std::uint32_t>(labels_.size()));
    if (added) labels_.push_back(text);
    return found->second;
}

void HazardLog::add(HazardKind kind, const Operation& operation, const Operation& other,
                    std::uintptr_t address, std::size_t bytes) {
    if (!on_) return;
    const Reported report = {kind, operation.number, other.number};
    if (std::find(reported_.begin(), reported_.end(), report) != reported_.end()) return;
    reported_.push_back(report);
    ++count_;
    if (kept_.size() >= max_kept_) return;
    kept_.push_back({kind, describe(operation), describe(other),
                     reinterpret_cast<const void*>(address), bytes});
}

void HazardLog::clear() noexcept {
    kept_.clear();
    count_ = 0;
}

HazardOperation HazardLog::describe(const Operation& operation) const {
    if (operation.number == 0) return {};
    return {labels_[operation.label], text_of(operation.stream), operation.number};
}

}  // namespace tensorpool::device
