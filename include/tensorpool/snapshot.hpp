#pragma once

/// @file
/// The statistics of all objects of this process that hold tensorpool's memory.

#include <string>
#include <vector>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/budget_statistics.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/planned_arena_statistics.hpp>
#include <tensorpool/record_group.hpp>
#include <tensorpool/scope_statistics.hpp>
#include <tensorpool/stash_statistics.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

/// The statistics of all live objects, in the order in which they were made.
struct Snapshot {
    /// The pools; the global pool is among them once it was used.
    std::vector<PoolStatistics> pools;
    /// The arenas.
    std::vector<ArenaStatistics> arenas;
    /// The scratches.
    std::vector<ArenaStatistics> scratches;
    /// The allocators of device memory and of pinned memory.
    std::vector<DeviceStatistics> devices;
    /// The planned arenas.
    std::vector<PlannedArenaStatistics> planned;
    /// The budgets; parents come before their children.
    std::vector<BudgetStatistics> budgets;
    /// What rests, by name.
    std::vector<StashStatistics> stashes;
    /// The scopes that began at least once, by name.
    std::vector<ScopeStatistics> scopes;
    /// The records of kinds that have no structure here.
    std::vector<RecordGroup> others;
};

/// Returns the statistics of every pool, arena, scratch, device allocator and planned arena of this
/// process. Any thread may call it at any time. Making and destroying pools and arenas waits for
/// it; allocating does not. Throws std::bad_alloc if there is no memory for the statistics.
TENSORPOOL_API Snapshot take_snapshot();

/// Returns one JSON object: {"version":1,"pools":[...],"arenas":[...],"scratches":[...],
/// "devices":[...],"planned":[...],"budgets":[...],"stashes":[...],"scopes":[...]}. The elements
/// are what `to_json` returns for each.
TENSORPOOL_API std::string to_json(const Snapshot& snapshot);
/// Returns a report for people: that of each pool, device allocator and planned arena, then tables
/// of the arenas, the scratches, the budgets as an indented tree, what rests, and the scopes. Empty
/// lists take no line; an empty snapshot gives "".
TENSORPOOL_API std::string to_text(const Snapshot& snapshot);

}  // namespace tensorpool
