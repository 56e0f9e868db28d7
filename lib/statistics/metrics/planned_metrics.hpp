#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// Counters of a planned arena. The owner thread writes with plain stores. Frees on other threads
/// than the first owner have counters of their own, to which threads add atomically. Any thread or
/// process may read them at any time, frees before allocations. Contains no pointers because it
/// lies in the shared segment.
struct alignas(64) PlannedTotals {
    // Set when a plan or an iteration ends.
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
    Counter pool_bytes;        // of the blocks allocated
    Counter pool_freed_bytes;  // of those, freed by the first owner
    Counter spare;

    // Requests served from the plan. Each request writes them, so they have a cache line of their
    // own.
    Counter served;
    Counter served_bytes;
    Counter freed_bytes;  // of those, freed by the first owner
    Counter spare_of_served[5];

    // Frees on threads other than the first owner, on a cache line that the path of the owner never
    // touches.
    Counter freed_elsewhere_bytes;
    Counter pool_freed_elsewhere_bytes;
    Counter spare_elsewhere[6];

    // Called by the owner.
    void count_served(std::uint64_t bytes) noexcept {
        detail::add(served, 1);
        detail::add(served_bytes, bytes);
    }
    void count_freed(std::uint64_t bytes) noexcept { detail::add_release(freed_bytes, bytes); }
    /// Counts a block of `bytes` from the pool, for a request that no plan covers.
    void count_from_pool(std::uint64_t bytes) noexcept {
        detail::add(from_pool, 1);
        detail::add(pool_bytes, bytes);
    }
    /// Counts a block from the pool for a request that deviated from the plan. `reason` is one of
    /// the four counters above. Release, so that a reader never sees more reasons than requests.
    void count_missed(Counter& reason, std::uint64_t bytes) noexcept {
        count_from_pool(bytes);
        detail::add_release(reason, 1);
    }
    void count_pool_freed(std::uint64_t bytes) noexcept {
        detail::add_release(pool_freed_bytes, bytes);
    }

    // Called by other threads. Release, so that a reader never sees more reasons than requests.
    void count_freed_elsewhere(std::uint64_t bytes) noexcept {
        freed_elsewhere_bytes.fetch_add(bytes, std::memory_order_release);
    }
    void count_pool_freed_elsewhere(std::uint64_t bytes) noexcept {
        pool_freed_elsewhere_bytes.fetch_add(bytes, std::memory_order_release);
    }
};
static_assert(sizeof(PlannedTotals) == 256);

/// Metrics of a planned arena.
template <>
struct Metrics<PlannedArenaStatistics> {
    using enum MetricKind;
    using Of = PlannedArenaStatistics;
    static constexpr const char* of = "planned";
    static constexpr Metric<Of, PlannedTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Number that no other pool or arena of the process has."},
        {"buffers", &Of::buffers, "buffers", gauge,
         "Buffers of the plan, or buffers learned so far.", "tensorpool_planned_buffers",
         &PlannedTotals::buffers},
        {"lower_bound_bytes", &Of::lower_bound_bytes, "bytes", gauge,
         "Highest number of bytes live at once in the learned iteration, the minimum for any "
         "allocator.",
         "tensorpool_planned_lower_bound_bytes", &PlannedTotals::lower_bound_bytes},
        {"pool_peak_bytes", &Of::pool_peak_bytes, "bytes", gauge,
         "Highest number of bytes in use at once in blocks of the pool.",
         "tensorpool_planned_pool_peak_bytes", &PlannedTotals::pool_peak_bytes},
        {"plan_peak_bytes", &Of::plan_peak_bytes, "bytes", gauge,
         "Bytes that the plan needs; 0 before there is a plan.",
         "tensorpool_planned_plan_peak_bytes", &PlannedTotals::plan_peak_bytes},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge, "Bytes held for the plan.",
         "tensorpool_planned_capacity_bytes", &PlannedTotals::capacity_bytes},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge,
         "Bytes in buffers of the plan that callers hold.", "tensorpool_planned_block_bytes"},
        {"pool_in_use_bytes", &Of::pool_in_use_bytes, "bytes", gauge,
         "Bytes of blocks of the pool that callers hold through the arena.",
         "tensorpool_planned_pool_block_bytes"},
        {"iterations", &Of::iterations, "iterations", total, "Iterations that ended.",
         "tensorpool_planned_iterations_total", &PlannedTotals::iterations},
        {"served", &Of::served, "calls", total, "Requests served from the plan.", "",
         &PlannedTotals::served},
        {"from_pool", &Of::from_pool, "calls", total,
         "All other requests, including those of learned iterations.", "",
         &PlannedTotals::from_pool},
        {"too_large", &Of::too_large, "calls", total,
         "Requests that went to the pool because they exceeded their buffer in the plan.", "",
         read_first(&PlannedTotals::too_large)},
        {"out_of_order", &Of::out_of_order, "calls", total,
         "Requests that went to the pool because the plan has another request in that position.",
         "", read_first(&PlannedTotals::out_of_order)},
        {"unknown", &Of::unknown, "calls", total,
         "Requests that went to the pool because they came after the end of the plan.", "",
         read_first(&PlannedTotals::unknown)},
        {"still_in_use", &Of::still_in_use, "calls", total,
         "Requests that went to the pool because their bytes were still in use.", "",
         read_first(&PlannedTotals::still_in_use)},
        {"plans", &Of::plans, "plans", total, "Plans made or loaded.",
         "tensorpool_planned_plans_total", &PlannedTotals::plans},
        {"planning_ns", &Of::planning_ns, "nanoseconds", total, "Time spent on making plans.", "",
         &PlannedTotals::planning_ns},
    };
};

}  // namespace tensorpool::statistics
