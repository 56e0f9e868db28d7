#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "stress/devices/planted_fault.hpp"

namespace tensorpool::stress::devices {

/// What a run of random programs came to.
struct Finding {
    std::uint64_t operations = 0;  ///< that were done
    std::uint64_t rounds = 0;
    std::string text;  ///< what is wrong; "" when nothing
    std::optional<Hazard> hazard;
};

/// Rounds of operations on new devices each, until something is found.
Finding run(std::uint64_t seed, Schedule schedule, std::uint64_t operations,
            const PlantedFault* fault = nullptr);

}  // namespace tensorpool::stress::devices
