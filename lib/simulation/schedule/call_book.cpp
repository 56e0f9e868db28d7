#include "simulation/schedule/call_book.hpp"

namespace tensorpool::device {
namespace {

bool requests_memory(SimulatedCall call) noexcept {
    using enum SimulatedCall;
    return call == allocate || call == allocate_async || call == reserve_addresses ||
           call == create_memory || call == map_memory || call == allocate_pinned ||
           call == register_pinned;
}

}  // namespace

void CallBook::set_faults(const SimulationFaults& faults) {
    faults_ = faults;
    since_faults_ = {};
    all_since_faults_ = 0;
}

DeviceStatus CallBook::admit(SimulatedCall call) {
    const auto index = static_cast<std::size_t>(call);
    ++calls_.counts[index];
    if (call == SimulatedCall::note_block) return DeviceStatus::ok;  // requests nothing of a device
    ++since_faults_.counts[index];
    ++all_since_faults_;
    if (faults_.lost_from != 0 && all_since_faults_ >= faults_.lost_from) {
        return DeviceStatus::device_lost;
    }
    if (!demanded(call)) return DeviceStatus::ok;
    return requests_memory(call) ? DeviceStatus::out_of_memory : DeviceStatus::failed;
}

bool CallBook::demanded(SimulatedCall call) const noexcept {
    using enum SimulatedCall;
    if (faults_.refuses_pinned && (call == allocate_pinned || call == register_pinned)) {
        return true;
    }
    for (const FailingCall& failing : faults_.failing) {
        const std::uint64_t number = since_faults_[call];
        if (failing.call == call && number >= failing.from &&
            number - failing.from < failing.count) {
            return true;
        }
    }
    return false;
}

std::string CallBook::error() const {
    const auto found = errors_.find(std::this_thread::get_id());
    return found == errors_.end() ? std::string() : found->second;
}

}  // namespace tensorpool::device
