#pragma once

/// @file
/// The figures of a process, this one or another, at one moment. Sizes are bytes.

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/device_statistics.hpp>
#include <tensorpool/export.hpp>
#include <tensorpool/planned_arena_statistics.hpp>
#include <tensorpool/scope_statistics.hpp>
#include <tensorpool/statistics.hpp>

namespace tensorpool {

/// One thread of one pool.
struct ThreadStatistics {
    std::uint64_t thread = 0;  ///< the system's number; 0: those that ended or have no slot
    std::uint64_t pool = 0;    ///< the pool's `id`
    std::string name;          ///< as the system has it; "" where it tells none
    std::uint64_t allocations = 0;
    std::uint64_t deallocations = 0;
    std::uint64_t parked_bytes = 0;  ///< free, in the thread's magazines
};

/// What did not fit into the segment. Pools, arenas, devices and planned arenas among it are added
/// up in the elements whose `id` is 0 and whose name is "other"; they lag by what happened since
/// each last went to the system.
struct LeftOut {
    std::uint64_t pools = 0;
    std::uint64_t arenas = 0;          ///< scratches too
    std::uint64_t devices = 0;         ///< allocators of device memory and of pinned memory
    std::uint64_t device_streams = 0;  ///< of allocators that fit, whose figures lag as above
    std::uint64_t planned = 0;         ///< arenas that serve a plan
    std::uint64_t slots = 0;   ///< of threads, whose figures lag by what is in their magazines
    std::uint64_t scopes = 0;  ///< StatisticsScopes that began with a name beyond the 64th
};

struct ProcessSnapshot {
    static constexpr std::uint32_t current_version = 1;

    std::uint32_t version = current_version;
    std::uint64_t process = 0;    ///< its number
    std::string process_name;     ///< as the system has it, "" where it tells none
    std::string library_version;  ///< of the tensorpool in it
    std::uint64_t time_ns = 0;    ///< when it was taken, by this machine's monotonic clock
    std::uint64_t time_unix_ns = 0;
    /// False when pools or threads came and went all the while: then some figures may not fit
    /// together.
    bool consistent = true;

    std::uint64_t committed_bytes = 0;  ///< of all pools and arenas
    std::uint64_t minor_faults = 0;     ///< of the process, total; 0 where the system tells none
    std::uint64_t resident_bytes = 0;   ///< of the process; 0 where the system tells none
    std::uint64_t failed_misuse = 0;   ///< checks that fired: a pointer or a size that does not fit
    std::uint64_t failed_leaks = 0;    ///< blocks left when a pool with checks went
    std::uint64_t failed_threads = 0;  ///< another thread used an arena of one
    std::uint64_t failed_scope_orders = 0;  ///< a scope ended out of order
    LeftOut left_out;

    std::vector<PoolStatistics> pools;  ///< in the order in which they were made, like the others
    std::vector<ArenaStatistics> arenas;
    std::vector<ArenaStatistics> scratches;
    std::vector<DeviceStatistics> devices;
    std::vector<PlannedArenaStatistics> planned;
    std::vector<ScopeStatistics> scopes;
    std::vector<ThreadStatistics> threads;  ///< by pool
    std::uint64_t entries = 0;              ///< of the timeline so far
};

/// One JSON object; the elements as `to_json` of each.
TENSORPOOL_API std::string to_json(const ProcessSnapshot& snapshot);
/// The text exposition format of Prometheus (version 0.0.4), labels `pid`, `process`, `pool`,
/// `arena`, `device`, `allocator`, `planned` and `scope`; HELP and TYPE once for each name.
TENSORPOOL_API std::string to_prometheus(const ProcessSnapshot& snapshot);
/// The same for several processes.
TENSORPOOL_API std::string to_prometheus(const std::vector<ProcessSnapshot>& snapshots);

/// What a pool did between two snapshots, a second.
struct PoolRates {
    std::uint64_t pool = 0;  ///< its `id`
    double seconds = 0;
    double allocations = 0;
    double deallocations = 0;
    double requested_bytes = 0;
    double allocated_bytes = 0;
    double from_magazines = 0;  ///< allocations by where they were served from: these add up
    double from_depots = 0;
    double from_spans = 0;
    double from_extents = 0;
    double from_system = 0;
    double failures = 0;
    double hit_ratio = 0;       ///< of the allocations meanwhile; 1 without any
    double rounding_ratio = 0;  ///< part of the allocated bytes meanwhile that nobody asked for
};

/// What a device allocator did between two snapshots, a second.
struct DeviceRates {
    std::uint64_t device = 0;  ///< its `id`
    double seconds = 0;
    double allocations = 0;
    double deallocations = 0;
    double allocated_bytes = 0;
    double growths = 0;           ///< slabs made, or grown
    double synchronizations = 0;  ///< times that it waited for the device
    double failures = 0;
    double hit_ratio =
        0;  ///< of the allocations meanwhile, by parked or free blocks; 1 without any
};

/// What a planned arena did between two snapshots, a second.
struct PlannedRates {
    std::uint64_t planned = 0;  ///< its `id`
    double seconds = 0;
    double iterations = 0;
    double served = 0;     ///< requests from the plan
    double from_pool = 0;  ///< all others
    double hit_ratio = 0;  ///< of the requests meanwhile, from the plan; 1 without any
};

struct ProcessRates {
    double seconds = 0;
    double minor_faults = 0;       ///< a second
    std::vector<PoolRates> pools;  ///< those that are in both snapshots
    std::vector<DeviceRates> devices;
    std::vector<PlannedRates> planned;
};

/// From the older to the newer, of the same process. Figures that went back, as those of a process
/// that took the same number, count as 0.
TENSORPOOL_API ProcessRates difference(const ProcessSnapshot& older, const ProcessSnapshot& newer);
/// One JSON object, the names those of the fields above.
TENSORPOOL_API std::string to_json(const ProcessRates& rates);

}  // namespace tensorpool
