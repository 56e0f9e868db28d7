#include "stress/watcher.hpp"

#include <random>
#include <thread>

#include "stress/worker.hpp"

namespace tensorpool::stress {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

void check_statistics(const PoolUnderStress& under_stress) {
    const char* const name = under_stress.options.name.c_str();
    const PoolStatistics is = under_stress.pool.statistics();
    const std::size_t limit = under_stress.options.max_capacity;
    if (is.deallocations > is.allocations) found("pool '%s': more frees than allocations", name);
    if (is.peak_in_use_bytes < is.in_use_bytes) found("pool '%s': in use exceeds its peak", name);
    if (limit != 0 && is.capacity_bytes > limit)
        found("pool '%s': capacity exceeds its limit", name);
    if (is.allocated_bytes < is.requested_bytes / 2)
        found("pool '%s': requested bytes exceed allocated bytes", name);
    if (under_stress.pool.get_utilization_ratio() < 0.0)
        found("pool '%s': negative utilization", name);
}

// Queries any address, in use or not. Any valid answer is accepted.
void query(PoolUnderStress& under_stress, const void* p) {
    if (under_stress.pool.usable_size(p) > 8 * under_stress.largest_bytes) {
        found("pool '%s': too large usable size of %p", under_stress.options.name.c_str(), p);
    }
    (void)under_stress.pool.owns(p);
}

bool reserves(PoolUnderStress& under_stress, std::size_t capacity) {
    try {
        under_stress.pool.reserve(capacity);
        return true;
    } catch (const AllocationError&) {
        if (under_stress.options.max_capacity == 0) found("reserving %zu B failed", capacity);
        return false;
    }
}

}  // namespace

void watch(Round& round, std::uint64_t seed, const std::atomic<bool>& done) {
    std::mt19937_64 random(seed);
    std::uintptr_t somewhere = 0;
    // Relaxed: the store becomes visible eventually and orders nothing; the thread is joined.
    while (!done.load(std::memory_order_relaxed)) {
        PoolUnderStress& under_stress = *round.pools[random() % pool_count];
        Totals totals;
        switch (random() % 8) {
            case 0:
                under_stress.pool.trim();
                break;
            case 1:
                if (!reserves(under_stress, random() % (16 * mib))) ++totals.failures;
                break;
            case 2:
                if (void* const p = under_stress.pool.try_allocate(64)) {
                    somewhere = reinterpret_cast<std::uintptr_t>(p);
                    under_stress.pool.deallocate(p);
                    totals = {.allocations = 1, .deallocations = 1, .requested = 64};
                } else {
                    ++totals.failures;
                }
                break;
            case 3:
            case 4:
                query(under_stress,
                      reinterpret_cast<const void*>(somewhere + random() % (32 * mib)));
                break;
            default:
                check_statistics(under_stress);
        }
        under_stress.add(totals);
        std::this_thread::yield();
    }
}

}  // namespace tensorpool::stress
