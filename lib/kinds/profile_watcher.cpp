#include "kinds/profile_watcher.hpp"

#include "platform/platform.hpp"
#include "watch/profile/profile_interval.hpp"
#include "watch/profile/profile_terms.hpp"
#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::kinds {

bool ProfileWatcher::watches(const PoolParts& pool) const noexcept {
    return !pool.is_checked() && !platform::has_memory_tool();
}

watch::Terms ProfileWatcher::terms(const PoolParts&) const noexcept {
    return watch::profile_terms;
}

double ProfileWatcher::interval(const PoolParts&) const noexcept {
    const std::uint64_t bytes = watch::profile_interval();
    return bytes == 1 ? every_request : static_cast<double>(bytes);
}

base::BlockMark* ProfileWatcher::mark(const Request& request, const void* p, double mean,
                                      base::BlockMark* covered) const noexcept {
    return watch::profiled_blocks().begin(p, request.bytes, mean, covered);
}

void ProfileWatcher::lose() const noexcept {
    watch::profiled_blocks().count_lost();
}

// A small block lies elsewhere than the one that would have been used again, so its first touch
// misses the processor's cache, or faults (perf/results/profile.md).
double ProfileWatcher::later_cost(const Request& request) const noexcept {
    constexpr double elsewhere_cost_ns = 1'500;
    constexpr std::size_t missed_bytes_per_ns = 8;
    if (request.bytes > largest_block_bytes) return 0;
    return elsewhere_cost_ns + static_cast<double>(request.bytes / missed_bytes_per_ns);
}

}  // namespace tensorpool::kinds
