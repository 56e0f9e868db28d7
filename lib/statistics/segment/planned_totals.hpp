#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>

namespace tensorpool::statistics {

using detail::Counter;

/// What is counted of a planned arena. Its owner thread writes with plain stores; what threads but
/// the first owner free has words of its own, added to atomically. Anybody reads it at any time,
/// what came back before what was handed out. No pointers: it lies in the shared segment.
struct alignas(64) PlannedTotals {
    // Set where a plan or an iteration ends.
    Counter buffers;
    Counter lower_bound_bytes;
    Counter pool_peak_bytes;
    Counter plan_peak_bytes;
    Counter capacity_bytes;
    Counter iterations;
    Counter plans;
    Counter planning_ns;

    // Requests that went to the pool.
    Counter from_pool;
    Counter too_large;
    Counter out_of_order;
    Counter unknown;
    Counter still_in_use;
    Counter pool_bytes;        // of the blocks that came
    Counter pool_freed_bytes;  // of those, by the first owner
    Counter spare;

    // Requests served from the plan: a line of their own, written by each.
    Counter served;
    Counter served_bytes;
    Counter freed_bytes;  // of those, by the first owner
    Counter spare_of_served[5];

    // By threads that are not the first owner: a line that its path never touches.
    Counter freed_elsewhere_bytes;
    Counter pool_freed_elsewhere_bytes;
    Counter spare_elsewhere[6];

    // The owner's.
    void count_served(std::uint64_t bytes) noexcept {
        detail::add(served, 1);
        detail::add(served_bytes, bytes);
    }
    void count_freed(std::uint64_t bytes) noexcept { detail::add_release(freed_bytes, bytes); }
    /// `bytes` of the pool's block, for a request that no plan was asked about.
    void count_from_pool(std::uint64_t bytes) noexcept {
        detail::add(from_pool, 1);
        detail::add(pool_bytes, bytes);
    }
    /// The same for one that left the plan; `reason` is one of the four words above. Release, so
    /// that a reader never sees more reasons than requests.
    void count_missed(Counter& reason, std::uint64_t bytes) noexcept {
        count_from_pool(bytes);
        detail::add_release(reason, 1);
    }
    void count_pool_freed(std::uint64_t bytes) noexcept {
        detail::add_release(pool_freed_bytes, bytes);
    }

    // Any other thread's. Release, as above.
    void count_freed_elsewhere(std::uint64_t bytes) noexcept {
        freed_elsewhere_bytes.fetch_add(bytes, std::memory_order_release);
    }
    void count_pool_freed_elsewhere(std::uint64_t bytes) noexcept {
        pool_freed_elsewhere_bytes.fetch_add(bytes, std::memory_order_release);
    }
};
static_assert(sizeof(PlannedTotals) == 256);

}  // namespace tensorpool::statistics
