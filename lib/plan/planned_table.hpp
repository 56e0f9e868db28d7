#pragma once

#include <tensorpool/planned_arena_statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

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

/// One arena that serves a plan.
struct alignas(64) PlannedRecord {
    Counter id;
    Name name;
    Counter state;  // a PlannedArenaStatistics::State
    PlannedTotals totals;

    using Statistics = PlannedArenaStatistics;
    static const RecordKind layout;
};

namespace planned_arenas {

using enum MetricKind;
using Of = PlannedRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other pool or arena of the process has.", "",
     offsetof(Of, id)},
    {"buffers", "buffers", gauge, "Buffers of the plan, or buffers learned so far.",
     "tensorpool_planned_buffers", offsetof(Of, totals.buffers)},
    {"lower_bound_bytes", "bytes", gauge,
     "Highest number of bytes live at once in the learned iteration, the minimum for any "
     "allocator.",
     "tensorpool_planned_lower_bound_bytes", offsetof(Of, totals.lower_bound_bytes)},
    {"pool_peak_bytes", "bytes", gauge,
     "Highest number of bytes in use at once in blocks of the pool.",
     "tensorpool_planned_pool_peak_bytes", offsetof(Of, totals.pool_peak_bytes)},
    {"plan_peak_bytes", "bytes", gauge, "Bytes that the plan needs; 0 before there is a plan.",
     "tensorpool_planned_plan_peak_bytes", offsetof(Of, totals.plan_peak_bytes)},
    {"capacity_bytes", "bytes", gauge, "Bytes held for the plan.",
     "tensorpool_planned_capacity_bytes", offsetof(Of, totals.capacity_bytes)},
    {"in_use_bytes", "bytes", gauge, "Bytes in buffers of the plan that callers hold.",
     "tensorpool_planned_block_bytes", offsetof(Of, totals.served_bytes)},
    {"pool_in_use_bytes", "bytes", gauge,
     "Bytes of blocks of the pool that callers hold through the arena.",
     "tensorpool_planned_pool_block_bytes", offsetof(Of, totals.pool_bytes)},
    {"iterations", "iterations", total, "Iterations that ended.",
     "tensorpool_planned_iterations_total", offsetof(Of, totals.iterations)},
    {"served", "calls", total, "Requests served from the plan.", "", offsetof(Of, totals.served)},
    {"from_pool", "calls", total, "All other requests, including those of learned iterations.", "",
     offsetof(Of, totals.from_pool)},
    {"too_large", "calls", total,
     "Requests that went to the pool because they exceeded their buffer in the plan.", "",
     offsetof(Of, totals.too_large), "", true},
    {"out_of_order", "calls", total,
     "Requests that went to the pool because the plan has another request in that position.", "",
     offsetof(Of, totals.out_of_order), "", true},
    {"unknown", "calls", total,
     "Requests that went to the pool because they came after the end of the plan.", "",
     offsetof(Of, totals.unknown), "", true},
    {"still_in_use", "calls", total,
     "Requests that went to the pool because their bytes were still in use.", "",
     offsetof(Of, totals.still_in_use), "", true},
    {"plans", "plans", total, "Plans made or loaded.", "tensorpool_planned_plans_total",
     offsetof(Of, totals.plans)},
    {"planning_ns", "nanoseconds", total, "Time spent on making plans.", "",
     offsetof(Of, totals.planning_ns)},
    {.name = "missed", .unit = "calls", .use = Use::derived},
    {.name = "requests", .unit = "calls", .use = Use::derived},
    {.name = "above", .unit = "bytes", .use = Use::derived},
    {.name = "bound", .unit = "bytes", .use = Use::derived},
    hidden("freed", offsetof(Of, totals.freed_bytes), true),
    hidden("freed_elsewhere", offsetof(Of, totals.freed_elsewhere_bytes), true),
    hidden("pool_freed", offsetof(Of, totals.pool_freed_bytes), true),
    hidden("pool_freed_elsewhere", offsetof(Of, totals.pool_freed_elsewhere_bytes), true),
    hidden("left", offsetof(Of, totals.from_pool)),
};
inline constexpr IndexOf<fields> at;
inline constexpr Rule rules[] = {
    {Rule::minus, at("pool_in_use_bytes"), at("pool_freed")},
    {Rule::minus, at("pool_in_use_bytes"), at("pool_freed_elsewhere")},
    {Rule::minus, at("in_use_bytes"), at("freed")},
    {Rule::minus, at("in_use_bytes"), at("freed_elsewhere")},
    {Rule::at_most, at("in_use_bytes"), at("capacity_bytes")},
    // The sum of the reasons is at most the number of requests that went to the pool.
    {Rule::at_most, at("too_large"), at("left")},
    {Rule::minus, at("left"), at("too_large")},
    {Rule::at_most, at("out_of_order"), at("left")},
    {Rule::minus, at("left"), at("out_of_order")},
    {Rule::at_most, at("unknown"), at("left")},
    {Rule::minus, at("left"), at("unknown")},
    {Rule::at_most, at("still_in_use"), at("left")},
    {Rule::minus, at("left"), at("still_in_use")},
};
inline constexpr Rule derivations[] = {
    {Rule::plus, at("missed"), at("too_large")},
    {Rule::plus, at("missed"), at("out_of_order")},
    {Rule::plus, at("missed"), at("unknown")},
    {Rule::plus, at("missed"), at("still_in_use")},
    {Rule::plus, at("requests"), at("served")},
    {Rule::plus, at("requests"), at("from_pool")},
    {Rule::plus, at("above"), at("plan_peak_bytes")},
    {Rule::minus, at("above"), at("lower_bound_bytes")},
    // 0 without a plan, of which nothing can be said then.
    {Rule::plus, at("bound"), at("lower_bound_bytes")},
    {Rule::at_most, at("bound"), at("plan_peak_bytes")},
};
inline constexpr Family families[] = {
    divided("tensorpool_planned_allocations_total", total,
            "Requests of planned arenas, by where they were served from: the plan or the pool.",
            "source", "plan|pool", {at("served"), at("from_pool")}),
    divided("tensorpool_planned_misses_total", total,
            "Requests that left the plan and went to the pool, by the reason.", "reason",
            "too_large|out_of_order|unknown|still_in_use",
            {at("too_large"), at("out_of_order"), at("unknown"), at("still_in_use")}),
    single("tensorpool_planned_planning_seconds_total", total, "Time spent on making plans.",
           Family::seconds, at("planning_ns")),
    {"tensorpool_planned_state", gauge, "1 for the state that the arena is in, 0 for others.",
     "state"},
};
inline constexpr Column columns[] = {
    {"NAME", Column::name},
    {.title = "STATE", .show = Column::choice, .width = 8},
    {"BOUND", Column::size, at("lower_bound_bytes")},
    {"POOL", Column::size_if_known, at("pool_peak_bytes")},
    {"PLAN", Column::size_if_known, at("plan_peak_bytes")},
    {"ABOVE", Column::part, at("above"), at("bound"), "",
     "By how much the plan exceeds the bound."},
    {"SERVED", Column::count, at("served")},
    {"MISSED", Column::count, at("missed"), no_field, "",
     "Requests that left the plan and went to the pool."},
    {"IN USE", Column::size, at("in_use_bytes")},
    {"HELD", Column::size, at("capacity_bytes")},
    {"FROM POOL", Column::size, at("pool_in_use_bytes")},
    {"ITERS", Column::count, at("iterations")},
    {"BUFFERS", Column::count, at("buffers")},
    {"PLANS", Column::count, at("plans")},
    {"LARGE", Column::count, at("too_large")},
    {"DISORDER", Column::count, at("out_of_order")},
    {"UNKNOWN", Column::count, at("unknown")},
    {"BUSY", Column::count, at("still_in_use")},
};
inline constexpr RecordTable table = {
    .name = "planned",
    .of = "planned",
    .label = "planned",
    .title = "planned arenas",
    .version = PlannedArenaStatistics::current_version,
    .choice = {"state", offsetof(Of, state), "learning|planning|serving"},
    .hits = at("served"),
    .requests = at("requests"),
    .fields = fields,
    .rules = rules,
    .derivations = derivations,
    .families = families,
    .columns = columns};

}  // namespace planned_arenas

inline constexpr RecordKind PlannedRecord::layout =
    kind_of<PlannedRecord>(256, planned_arenas::table);

}  // namespace tensorpool::statistics
