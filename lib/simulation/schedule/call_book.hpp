#pragma once

#include <string>
#include <thread>
#include <unordered_map>

#include <tensorpool/device/device_status.hpp>
#include <tensorpool/device/simulated_calls.hpp>
#include <tensorpool/device/simulation_faults.hpp>

namespace tensorpool::device {

/// Counts calls, decides which of them fail by injected faults, and keeps each thread's last error
/// text. Not thread-safe: the simulation's lock guards it.
class CallBook {
public:
    const SimulatedCalls& calls() const noexcept { return calls_; }
    void reset_calls() noexcept { calls_ = {}; }
    const SimulationFaults& faults() const noexcept { return faults_; }
    void set_faults(const SimulationFaults& faults);

    /// Counts the call. Returns ok if no fault is injected into it.
    DeviceStatus admit(SimulatedCall call);

    void keep_error(std::string text) { errors_[std::this_thread::get_id()] = std::move(text); }
    std::string error() const;

private:
    bool demanded(SimulatedCall call) const noexcept;

    SimulatedCalls calls_;
    SimulationFaults faults_;
    SimulatedCalls since_faults_;
    std::uint64_t all_since_faults_ = 0;
    std::unordered_map<std::thread::id, std::string> errors_;
};

}  // namespace tensorpool::device
