#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>

#include <tensorpool/memory_pool.hpp>

#include "models/planted_faults.hpp"
#include "stress/live_map.hpp"

namespace tensorpool::stress {

/// What the threads did to a pool, to be compared with its statistics.
struct Totals {
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t requested = 0;
    std::uint64_t failures = 0;

    void add(const Totals& other) {
        allocations += other.allocations;
        deallocations += other.deallocations;
        requested += other.requested;
        failures += other.failures;
    }
};

/// One of the pools of a round.
struct PoolUnderStress {
    PoolUnderStress(const PoolOptions& its_options, std::size_t largest, std::string_view plant)
        : options(its_options),
          largest_bytes(largest),
          pool(options),
          subject(testing::subject_with_fault(plant, pool)) {}

    const PoolOptions options;
    const std::size_t largest_bytes;  // largest request
    MemoryPool pool;
    std::unique_ptr<testing::Subject> subject;
    std::mutex mutex;
    Totals totals;  // guarded by `mutex`

    void add(const Totals& of_a_thread) {
        const std::lock_guard guard(mutex);
        totals.add(of_a_thread);
    }
};

inline constexpr unsigned pool_count = 4;
using Pools = std::array<std::unique_ptr<PoolUnderStress>, pool_count>;

/// Makes a pool with default options, one with a small limit, one that releases memory at once, and
/// one with checks.
Pools make_pools(std::string_view plant);
/// Checks that all statistics are zero. REQUIRES: all blocks are freed, and no thread but the
/// caller has a cache.
void check_that_nothing_is_left(PoolUnderStress& under_stress);

}  // namespace tensorpool::stress
