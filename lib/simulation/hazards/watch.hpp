#pragma once

#include <tensorpool/device/simulation_options.hpp>

#include "simulation/hazards/hazard_log.hpp"
#include "simulation/hazards/shadow_memory.hpp"

namespace tensorpool::device {

/// The state shared by the parts that detect hazards: the log, shadow memory and the host's clock.
struct Watch {
    explicit Watch(const SimulationOptions& options)
        : on(options.finds_hazards), log(options.finds_hazards, options.max_hazards) {}

    /// Numbers the next operation.
    Operation operation(const std::string& label, StreamName stream, std::uint32_t timeline = 0,
                        std::uint64_t tick = 0) {
        log.begin();
        if (!on) return {};
        return {++operations, tick, timeline, log.label(label), stream};
    }
    Operation host_operation(const std::string& label) {
        return operation(label, StreamName::host());
    }
    /// Merges a clock into the host's, after the host waited for what the clock stands for.
    void learn(const VectorClock& clock) {
        if (host.join(clock)) ++host_version;
    }

    bool on;
    HazardLog log;
    ShadowMemory shadow;
    VectorClock host;
    std::uint64_t host_version = 1;
    std::uint64_t operations = 0;
};

/// Whether anything with this clock is ordered after the operation. Everything that the host has
/// waited for is ordered before all work that it submits later.
inline bool ordered(const Operation& operation, const VectorClock& clock) noexcept {
    return operation.number == 0 || clock[operation.timeline] >= operation.tick;
}

}  // namespace tensorpool::device
