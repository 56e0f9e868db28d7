#pragma once

/// @file
/// The figures of everything in this process that holds memory of tensorpool's.

#include <string>
#include <vector>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/planned_arena_statistics.hpp>
#include <tensorpool/scope_statistics.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

/// What is alive, in the order in which it was made.
struct Snapshot {
    std::vector<PoolStatistics> pools;  ///< the global pool too, once it was used
    std::vector<ArenaStatistics> arenas;
    std::vector<ArenaStatistics> scratches;
    std::vector<DeviceStatistics> devices;  ///< allocators of device memory and of pinned memory
    std::vector<PlannedArenaStatistics> planned;
    std::vector<ScopeStatistics> scopes;  ///< by name, those that began at least once
};

/// The figures of every pool, arena, scratch, device allocator and planned arena of this process.
/// Any thread may call it at any time; making and destroying pools and arenas waits for it,
/// allocating does not. Throws std::bad_alloc when there is no memory for the figures.
TENSORPOOL_API Snapshot take_snapshot();

/// One JSON object: {"version":1,"pools":[...],"arenas":[...],"scratches":[...],"devices":[...],
/// "planned":[...],"scopes":[...]}, the elements as `to_json` of each.
TENSORPOOL_API std::string to_json(const Snapshot& snapshot);
/// A report for people: that of each pool, device allocator and planned arena, then tables of the
/// arenas, the scratches and the scopes.
/// What there is none of takes no line; an empty snapshot gives "".
TENSORPOOL_API std::string to_text(const Snapshot& snapshot);

}  // namespace tensorpool
