#pragma once

#include <cstdint>

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

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

/// Of a planned arena.
template <>
struct Metrics<PlannedArenaStatistics> {
    using enum MetricKind;
    using Of = PlannedArenaStatistics;
    static constexpr const char* of = "planned";
    static constexpr Metric<Of, PlannedTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Unlike that of any other pool or arena of the process."},
        {"buffers", &Of::buffers, "buffers", gauge, "Of the plan, or learned so far.",
         "tensorpool_planned_buffers", &PlannedTotals::buffers},
        {"lower_bound_bytes", &Of::lower_bound_bytes, "bytes", gauge,
         "The most bytes alive at once in what was learned: no allocator could need less.",
         "tensorpool_planned_lower_bound_bytes", &PlannedTotals::lower_bound_bytes},
        {"pool_peak_bytes", &Of::pool_peak_bytes, "bytes", gauge,
         "The most bytes of the pool's blocks that it took at once.",
         "tensorpool_planned_pool_peak_bytes", &PlannedTotals::pool_peak_bytes},
        {"plan_peak_bytes", &Of::plan_peak_bytes, "bytes", gauge,
         "What the plan needs; 0 before there is one.", "tensorpool_planned_plan_peak_bytes",
         &PlannedTotals::plan_peak_bytes},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge, "Held for the plan.",
         "tensorpool_planned_capacity_bytes", &PlannedTotals::capacity_bytes},
        {"in_use_bytes", &Of::in_use_bytes, "bytes", gauge,
         "In places of the plan that callers hold.", "tensorpool_planned_block_bytes"},
        {"pool_in_use_bytes", &Of::pool_in_use_bytes, "bytes", gauge,
         "Of the pool's blocks that callers hold through it.",
         "tensorpool_planned_pool_block_bytes"},
        {"iterations", &Of::iterations, "iterations", total, "Iterations that ended.",
         "tensorpool_planned_iterations_total", &PlannedTotals::iterations},
        {"served", &Of::served, "calls", total, "Requests served from the plan.", "",
         &PlannedTotals::served},
        {"from_pool", &Of::from_pool, "calls", total,
         "All other requests, those of iterations that it learned from too.", "",
         &PlannedTotals::from_pool},
        {"too_large", &Of::too_large, "calls", total,
         "Of those, larger than their place in the plan.", "",
         read_first(&PlannedTotals::too_large)},
        {"out_of_order", &Of::out_of_order, "calls", total,
         "Of those, where the plan has another request.", "",
         read_first(&PlannedTotals::out_of_order)},
        {"unknown", &Of::unknown, "calls", total, "Of those, beyond the end of the plan.", "",
         read_first(&PlannedTotals::unknown)},
        {"still_in_use", &Of::still_in_use, "calls", total,
         "Of those, whose place somebody still held.", "",
         read_first(&PlannedTotals::still_in_use)},
        {"plans", &Of::plans, "plans", total, "Plans made, or loaded.",
         "tensorpool_planned_plans_total", &PlannedTotals::plans},
        {"planning_ns", &Of::planning_ns, "nanoseconds", total, "Spent on making them.", "",
         &PlannedTotals::planning_ns},
    };
};

}  // namespace tensorpool::statistics
