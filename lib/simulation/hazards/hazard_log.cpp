#include "simulation/hazards/hazard_log.hpp"

#include "device/call_errors.hpp"

#include <cstdio>

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

namespace tensorpool {
namespace {

std::string text_of(const HazardOperation& operation) {
    if (operation.number == 0) return "nothing known";
    return "\"" + operation.label + "\" (no. " + std::to_string(operation.number) + ", " +
           operation.stream + ")";
}

}  // namespace

const char* to_string(HazardKind kind) noexcept {
    return device::text_of(
        {"reuse before the last use completed", "access after free", "read of uninitialised memory",
         "missing record_use", "host access before the work completed", "illegal call in capture",
         "access outside of any allocation", "free of memory in use", "double free",
         "unordered access", "overlapping blocks", "host access to private memory"},
        kind);
}

std::string to_string(const Hazard& hazard) {
    std::string text = to_string(hazard.kind);
    text += ": " + text_of(hazard.operation) + " after " + text_of(hazard.other);
    if (hazard.bytes == 0) return text;
    char range[64];
    std::snprintf(range, sizeof range, ", %zu bytes at %p", hazard.bytes, hazard.address);
    return text + range;
}

}  // namespace tensorpool
