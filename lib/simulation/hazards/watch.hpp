#pragma once

#include <cstdint>
#include <string>

#include <tensorpool/device/simulation_options.hpp>

#include "simulation/hazards/hazard_log.hpp"
#include "simulation/hazards/shadow_memory.hpp"
#include "simulation/hazards/vector_clock.hpp"
#include "simulation/operation.hpp"

namespace tensorpool::device {

/// What the parts that look for hazards share: the log, the shadow memory and the host's clock.
struct Watch {
    explicit Watch(const SimulationOptions& options)
        : on(options.finds_hazards), log(options.finds_hazards, options.max_hazards) {}

    /// Gives the next operation its number.
    Operation operation(const std::string& label, StreamName stream, std::uint32_t timeline = 0,
                        std::uint64_t tick = 0) {
        log.begin();
        if (!on) return {};
        return {++operations, tick, timeline, log.label(label), stream};
    }
    Operation host_operation(const std::string& label) {
        return operation(label, StreamName::host());
    }
    /// The host waited for something, and knows now what that knew.
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

/// Whether something with this clock comes after the operation. What the host knows comes before
/// everything that it gives later.
inline bool ordered(const Operation& operation, const VectorClock& clock) noexcept {
    return operation.number == 0 || clock[operation.timeline] >= operation.tick;
}

}  // namespace tensorpool::device
