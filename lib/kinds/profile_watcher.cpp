#include "kinds/profile_watcher.hpp"

#include <algorithm>

#include "platform/platform.hpp"
#include "watch/profile/profile_interval.hpp"
#include "watch/profile/profile_terms.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::kinds {
namespace {

using watch::Distance;

// What took longer was disturbed: the first stack of a process reads the tables of its files, which
// takes milliseconds.
constexpr double max_cost_ns = 20'000;
// A small block lies elsewhere than the one that would have been used again, so its first touch
// misses the processor's cache, or faults (perf/results/profile.md).
constexpr double elsewhere_cost_ns = 1'500;
constexpr std::size_t missed_bytes_per_ns = 8;
// The interval of this value samples every allocation, whatever that takes. Tests use it.
constexpr std::uint64_t every_allocation = 1;
constexpr double tiny_mean = 1.0 / 64;

void set_next(Look& look, std::uint64_t interval) noexcept {
    look.pace.set(look.distance, look.watcher, watch::profile_terms, static_cast<double>(interval));
}

}  // namespace

bool ProfileWatcher::watches(const PoolParts& pool) const noexcept {
    return !pool.is_checked() && !platform::has_memory_tool();
}

Wish ProfileWatcher::look(Look& look) const noexcept {
    Distance& distance = look.distance;
    const std::uint64_t interval = watch::profile_interval();
    if (interval == 0) {
        distance = {.left = watch::profile_look_again_bytes};
        return {};
    }
    if (interval == every_allocation) {
        distance = {};
        return {.mean = tiny_mean};
    }
    // The request may be longer than what is left, of which the rest counts for the next distance.
    while (distance.mean == 0) {
        if (look.pace.lacks_rate()) look.pace.look(platform::thread_time_ns());
        const std::int64_t left = distance.left;
        set_next(look, interval);
        distance.left += left;
        if (distance.left >= 0) return {};
    }
    const double mean = distance.mean;
    if (look.pace.is_time_to_look()) look.pace.look(platform::thread_time_ns());
    set_next(look, interval);
    return {.mean = mean};
}

base::BlockMark* ProfileWatcher::begin(Look& look, const void* p, double mean,
                                       base::BlockMark* covered) const noexcept {
    const std::size_t bytes = look.request.bytes;
    watch::ProfiledBlock* const block = watch::profiled_blocks().begin(p, bytes, mean, covered);
    const auto took = static_cast<double>(platform::monotonic_clock_ns() - look.begun_ns);
    const double later = bytes > largest_block_bytes
                             ? 0
                             : elsewhere_cost_ns + static_cast<double>(bytes / missed_bytes_per_ns);
    look.pace.count(look.watcher, watch::profile_terms, std::min(took, max_cost_ns) + later);
    return block;
}

void ProfileWatcher::lose() const noexcept {
    watch::profiled_blocks().count_lost();
}

}  // namespace tensorpool::kinds
