#include "stress/devices/setting.hpp"

#include <chrono>
#include <cstddef>

#include "stress/devices/random.hpp"

namespace tensorpool::stress::devices {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

SimulationOptions simulation_of(Random& random) {
    SimulationOptions made;
    made.devices = static_cast<int>(1 + random.below(3));
    made.memory_bytes = (std::size_t{48} << random.below(3)) * mib;
    made.virtual_memory = random.one_in(2);
    made.late_free_size = random.one_in(3);
    made.unified_memory = random.one_in(4);
    if (random.one_in(3)) made.recommended_bytes = made.memory_bytes / 4 * 3;
    if (random.one_in(4)) made.largest_allocation = made.memory_bytes / 3;
    // If blocks are not watched, they take the fast path, and only contents and slabs are checked.
    made.watches_blocks = !random.one_in(4);
    made.patience = 40;
    return made;
}

}  // namespace

Setting setting_of(std::uint64_t seed, Schedule schedule) {
    Random random(seed);
    Setting made;
    made.simulation = simulation_of(random);
    made.simulation.schedule = schedule;
    made.simulation.seed = seed;
    if (random.one_in(2)) {
        made.caching.hard_limit = 0.5 + static_cast<double>(random.below(5)) / 10;
        made.caching.soft_limit = made.caching.hard_limit / 2;
    }
    made.caching.expandable = !random.one_in(8);
    made.caching.oversize_bytes = (std::size_t{4} << random.below(4)) * mib;
    made.caching.oversize_slack_bytes = made.caching.oversize_bytes / 2;
    made.pinned.max_bytes = (std::size_t{8} << random.below(3)) * mib;
    made.pinned.largest_slab = (std::size_t{2} << random.below(3)) * mib;
    // The work that is waited for ends after `patience` queries, so no time is too short.
    made.pinned.pinned_wait = std::chrono::hours(random.below(2));
    return made;
}

}  // namespace tensorpool::stress::devices
