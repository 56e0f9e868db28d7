#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <tensorpool/device/hazard.hpp>
#include <tensorpool/device/simulation_options.hpp>

#include "stress/devices/planted_fault.hpp"

namespace tensorpool::stress::devices {

/// The result of a run of random programs.
struct Finding {
    std::uint64_t operations = 0;  ///< operations done
    std::uint64_t rounds = 0;
    std::string text;  ///< what is wrong, or ""
    std::optional<Hazard> hazard;
};

/// Runs rounds of operations, each on new devices, until something is found.
Finding run(std::uint64_t seed, Schedule schedule, std::uint64_t operations,
            const PlantedFault* fault = nullptr);

}  // namespace tensorpool::stress::devices
