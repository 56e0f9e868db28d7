#pragma once

#include <cstdint>

#include <tensorpool/device/caching_options.hpp>
#include <tensorpool/device/pinned_options.hpp>
#include <tensorpool/device/simulation_options.hpp>

namespace tensorpool::stress::devices {

/// The devices and allocators of one round.
struct Setting {
    SimulationOptions simulation;
    CachingOptions caching;
    PinnedOptions pinned;
};

/// Returns a random setting with small devices, determined by the seed.
Setting setting_of(std::uint64_t seed, Schedule schedule);

}  // namespace tensorpool::stress::devices
