#include "common/totals.hpp"

#include <algorithm>

#include "common/printable.hpp"

namespace tensorpool::command {
namespace {

void add_pool(Totals& totals, const PoolStatistics& pool) {
    totals.in_use_bytes += pool.in_use_bytes;
    totals.capacity_bytes += pool.capacity_bytes;
    totals.peak_bytes += pool.peak_in_use_bytes;
    totals.allocations += pool.allocations;
    totals.deallocations += pool.deallocations;
    totals.cache_hits += pool.cache_hits;
    totals.failures += pool.failures;
}

void add_arena(Totals& totals, const ArenaStatistics& arena) {
    // A measuring arena has no memory, so it is not included.
    if (arena.kind == ArenaStatistics::Kind::measuring) return;
    totals.in_use_bytes += arena.used_bytes;
    totals.capacity_bytes += arena.capacity_bytes;
    totals.peak_bytes += arena.peak_used_bytes;
    totals.failures += arena.refusals;
}

void add_planned(Totals& totals, const PlannedArenaStatistics& arena) {
    totals.in_use_bytes += arena.in_use_bytes;
    totals.capacity_bytes += arena.capacity_bytes;
    totals.peak_bytes += std::max(arena.in_use_bytes, arena.plan_peak_bytes);
}

std::uint64_t limit_of(const ProcessSnapshot& snapshot) {
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

}  // namespace

Totals add_up(const ProcessSnapshot& snapshot) {
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

TotalRates add_up(const ProcessRates& rates) {
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

double ratio(std::uint64_t part, std::uint64_t whole) {
    return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

std::string shown_name(const std::string& name, std::uint64_t process) {
    return name.empty() ? "process " + std::to_string(process) : printable(name);
}

void keep_pool(ProcessSnapshot& snapshot, const std::string& pool) {
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
