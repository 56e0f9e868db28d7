#pragma once

/// @file
/// The totals of a process: its pools, arenas of all kinds and scratches, and separately its device
/// allocators, whose memory is distinct.

#include <algorithm>

#include <tensorpool/process_snapshot.hpp>

#include "common/printable.hpp"

namespace tensorpool::command {

struct Totals {
    std::uint64_t in_use_bytes = 0;    ///< by blocks, arenas and scratches
    std::uint64_t capacity_bytes = 0;  ///< committed
    std::uint64_t peak_bytes = 0;      ///< sum of peaks, which may have occurred at different times
    std::uint64_t limit_bytes = 0;     ///< sum of limits; 0 if one has none
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t cache_hits = 0;
    std::uint64_t failures = 0;               ///< failed requests
    std::uint64_t checks = 0;                 ///< errors that checks found
    std::uint64_t device_in_use_bytes = 0;    ///< by blocks of device allocators
    std::uint64_t device_capacity_bytes = 0;  ///< slabs of device allocators
};

/// A total and its name in JSON.
struct TotalMetric {
    const char* name;
    std::uint64_t Totals::*value;
    bool is_memory = true;  ///< `ls` shows it too
};
inline constexpr TotalMetric total_metrics[] = {
    {"in_use_bytes", &Totals::in_use_bytes},
    {"capacity_bytes", &Totals::capacity_bytes},
    {"peak_in_use_bytes", &Totals::peak_bytes},
    {"limit_bytes", &Totals::limit_bytes},
    {"allocations", &Totals::allocations, false},
    {"deallocations", &Totals::deallocations, false},
    {"failures", &Totals::failures, false},
    {"checks", &Totals::checks, false},
    {"device_in_use_bytes", &Totals::device_in_use_bytes},
    {"device_capacity_bytes", &Totals::device_capacity_bytes},
};

/// The activity of all pools of a process, per second.
struct TotalRates {
    double allocations = 0;
    double deallocations = 0;
    double allocated_bytes = 0;
    double failures = 0;
    double faults = 0;
    double hit_ratio = 1;  ///< of the allocations in this time; 1 if there were none
};

inline void add_pool(Totals& totals, const PoolStatistics& pool) {
    totals.in_use_bytes += pool.in_use_bytes;
    totals.capacity_bytes += pool.capacity_bytes;
    totals.peak_bytes += pool.peak_in_use_bytes;
    totals.allocations += pool.allocations;
    totals.deallocations += pool.deallocations;
    totals.cache_hits += pool.cache_hits;
    totals.failures += pool.failures;
}

inline void add_arena(Totals& totals, const ArenaStatistics& arena) {
    // A measuring arena has no memory, so it is not included.
    if (arena.kind == ArenaStatistics::Kind::measuring) return;
    totals.in_use_bytes += arena.used_bytes;
    totals.capacity_bytes += arena.capacity_bytes;
    totals.peak_bytes += arena.peak_used_bytes;
    totals.failures += arena.refusals;
}

inline void add_planned(Totals& totals, const PlannedArenaStatistics& arena) {
    totals.in_use_bytes += arena.in_use_bytes;
    totals.capacity_bytes += arena.capacity_bytes;
    totals.peak_bytes += std::max(arena.in_use_bytes, arena.plan_peak_bytes);
}

inline std::uint64_t limit_of(const ProcessSnapshot& snapshot) {
    std::uint64_t limit = 0;
    for (const PoolStatistics& pool : snapshot.pools) {
        if (pool.limit_bytes == 0) return 0;
        limit += pool.limit_bytes;
    }
    for (const auto* const kind : {&snapshot.arenas, &snapshot.scratches}) {
        for (const ArenaStatistics& arena : *kind) {
            if (arena.kind == ArenaStatistics::Kind::measuring) continue;
            if (arena.limit_bytes == 0) return 0;
            limit += arena.limit_bytes;
        }
    }
    return limit;
}

inline Totals add_up(const ProcessSnapshot& snapshot) {
    Totals totals;
    for (const PoolStatistics& pool : snapshot.pools) add_pool(totals, pool);
    for (const ArenaStatistics& arena : snapshot.arenas) add_arena(totals, arena);
    for (const ArenaStatistics& scratch : snapshot.scratches) add_arena(totals, scratch);
    for (const PlannedArenaStatistics& arena : snapshot.planned) add_planned(totals, arena);
    for (const DeviceStatistics& device : snapshot.devices) {
        totals.device_in_use_bytes += device.in_use_bytes;
        totals.device_capacity_bytes += device.capacity_bytes;
    }
    totals.limit_bytes = limit_of(snapshot);
    totals.checks = snapshot.failed_misuse + snapshot.failed_leaks + snapshot.failed_threads +
                    snapshot.failed_scope_orders;
    return totals;
}

inline TotalRates add_up(const ProcessRates& rates) {
    TotalRates totals;
    double hits = 0;
    for (const PoolRates& pool : rates.pools) {
        totals.allocations += pool.allocations;
        totals.deallocations += pool.deallocations;
        totals.allocated_bytes += pool.allocated_bytes;
        totals.failures += pool.failures;
        hits += pool.allocations * pool.hit_ratio;
    }
    totals.faults = rates.minor_faults;
    if (totals.allocations > 0) totals.hit_ratio = std::min(hits / totals.allocations, 1.0);
    return totals;
}

/// Returns `part` / `whole`, or 0 if `whole` is 0.
inline double ratio(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

/// Returns the name of a process, made printable, or its id if it has no name.
inline std::string shown_name(const std::string& name, std::uint64_t process) {
    return name.empty() ? "process " + std::to_string(process) : printable(name);
}

/// Keeps only the pools of this name. Removes arenas, scratches, and threads of other pools too.
inline void keep_pool(ProcessSnapshot& snapshot, const std::string& pool) {
    const auto is_other = [&](const PoolStatistics& p) { return p.name != pool; };
    std::erase_if(snapshot.pools, is_other);
    const auto is_kept = [&](std::uint64_t id) {
        return std::ranges::any_of(snapshot.pools, [&](const auto& p) { return p.id == id; });
    };
    std::erase_if(snapshot.threads, [&](const auto& thread) { return !is_kept(thread.pool); });
    snapshot.arenas.clear();
    snapshot.scratches.clear();
    snapshot.devices.clear();
    snapshot.planned.clear();
    snapshot.budgets.clear();
    snapshot.stashes.clear();
}

}  // namespace tensorpool::command
