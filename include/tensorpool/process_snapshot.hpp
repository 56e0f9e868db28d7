#pragma once

/// @file
/// The statistics of a process, this one or another, at one moment. Sizes are bytes.

#include <cstdint>
#include <map>
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

/// The statistics of one thread of one pool.
struct ThreadStatistics {
    /// The system's number of the thread; 0 stands for threads that ended or have no counters of
    /// their own.
    std::uint64_t thread = 0;
    /// The `id` of the pool.
    std::uint64_t pool = 0;
    /// The thread's name, as the system has it; "" if it has none.
    std::string name;
    /// The number of allocations.
    std::uint64_t allocations = 0;
    /// The number of deallocations.
    std::uint64_t deallocations = 0;
    /// The free bytes in the thread's magazines.
    std::uint64_t parked_bytes = 0;
};

/// The statistics of a process at one moment.
struct ProcessSnapshot {
    /// The version of this structure.
    static constexpr std::uint32_t current_version = 1;

    /// The version of the structure that was filled in.
    std::uint32_t version = current_version;
    /// The number of the process.
    std::uint64_t process = 0;
    /// The process's name, as the system has it; "" if it has none.
    std::string process_name;
    /// The version of tensorpool in the process.
    std::string library_version;
    /// The time of the snapshot in nanoseconds, by this machine's monotonic clock.
    std::uint64_t time_ns = 0;
    /// The time of the snapshot in nanoseconds since 1970 UTC.
    std::uint64_t time_unix_ns = 0;
    /// False if pools or threads came and went all the time, so that some values may not fit
    /// together.
    bool consistent = true;

    /// The bytes that all pools and arenas have committed.
    std::uint64_t committed_bytes = 0;
    /// The total of the process's minor page faults; 0 if the system does not report them.
    std::uint64_t minor_faults = 0;
    /// The resident memory of the process; 0 if the system does not report it.
    std::uint64_t resident_bytes = 0;
    /// A range of the process's addresses; 0 bytes if it is unknown.
    struct Addresses {
        /// The first address.
        std::uint64_t begin = 0;
        /// The length in bytes.
        std::uint64_t bytes = 0;
    };
    /// The range that holds the memory of all pools. Other mappings may lie in it too.
    Addresses pool_addresses;
    /// The table with a word for each page of that range.
    Addresses page_map;
    /// The failed checks of a pointer or a size.
    std::uint64_t failed_misuse = 0;
    /// The blocks in use when a pool with checks was destroyed.
    std::uint64_t failed_leaks = 0;
    /// How often another thread used an arena of one thread.
    std::uint64_t failed_threads = 0;
    /// How often a scope ended out of order.
    std::uint64_t failed_scope_orders = 0;
    /// The numbers of objects that did not fit into the segment, by the names of their lists in
    /// JSON; "slots" are threads' counters.
    ///
    /// Pools, arenas, scopes, devices and planned arenas among them are added up in the elements
    /// whose `id` is 0 and whose name is "other". Their statistics, and those of threads and of
    /// streams of other allocators, lag by what happened since each last called the system. Nothing
    /// else is known of budgets and of what rests.
    std::map<std::string, std::uint64_t> left_out = {
        {"pools", 0},   {"arenas", 0},  {"devices", 0}, {"device_streams", 0}, {"planned", 0},
        {"budgets", 0}, {"stashes", 0}, {"scopes", 0},  {"slots", 0}};

    /// The pools, in the order in which they were made.
    std::vector<PoolStatistics> pools;
    /// The arenas, in the order in which they were made.
    std::vector<ArenaStatistics> arenas;
    /// The scratches, in the order in which they were made.
    std::vector<ArenaStatistics> scratches;
    /// The device allocators, in the order in which they were made.
    std::vector<DeviceStatistics> devices;
    /// The streams of device allocators that hold memory or that freed memory waits for, and the
    /// memory of graphs, by allocator.
    std::vector<DeviceStreamStatistics> device_streams;
    /// The planned arenas, in the order in which they were made.
    std::vector<PlannedArenaStatistics> planned;
    /// The budgets, in the order in which they were made: parents come before their children.
    std::vector<BudgetStatistics> budgets;
    /// What rests: stashes by name, maps, and frozen blocks by name.
    std::vector<StashStatistics> stashes;
    /// The scopes, by name.
    std::vector<ScopeStatistics> scopes;
    /// The records of kinds that have no structure here.
    std::vector<RecordGroup> others;
    /// The threads, by pool.
    std::vector<ThreadStatistics> threads;
    /// The number of timeline entries so far.
    std::uint64_t entries = 0;
};

/// Returns one JSON object. Its elements are what `to_json` returns for each.
TENSORPOOL_API std::string to_json(const ProcessSnapshot& snapshot);
/// Returns the metrics in the text exposition format of Prometheus (version 0.0.4), with the labels
/// `pid`, `process`, `pool`, `arena`, `device`, `allocator`, `planned`, `budget`, `stash` and
/// `scope`. HELP and TYPE appear once for each name.
TENSORPOOL_API std::string to_prometheus(const ProcessSnapshot& snapshot);
/// Returns the metrics of several processes in the text exposition format of Prometheus (version
/// 0.0.4), with the labels `pid`, `process`, `pool`, `arena`, `device`, `allocator`, `planned`,
/// `budget`, `stash` and `scope`. HELP and TYPE appear once for each name.
TENSORPOOL_API std::string to_prometheus(const std::vector<ProcessSnapshot>& snapshots);

/// The rates of a pool between two snapshots. Values are a second unless a comment says otherwise.
struct PoolRates {
    /// The `id` of the pool.
    std::uint64_t pool = 0;
    /// The time between the snapshots, in seconds.
    double seconds = 0;
    /// Allocations.
    double allocations = 0;
    /// Deallocations.
    double deallocations = 0;
    /// Requested bytes.
    double requested_bytes = 0;
    /// Bytes of the blocks that served the requests.
    double allocated_bytes = 0;
    /// Allocations from the thread's magazines. The five values `from_…` add up to all allocations.
    double from_magazines = 0;
    /// Allocations from a depot.
    double from_depots = 0;
    /// Allocations from the spans of buckets.
    double from_spans = 0;
    /// Allocations from free runs of pages.
    double from_extents = 0;
    /// Allocations for which the pool grew.
    double from_system = 0;
    /// Requests that could not be met.
    double failures = 0;
    /// The part of the allocations between the snapshots that caches served; 1 if there were none.
    double hit_ratio = 0;
    /// The part of the bytes allocated between the snapshots that rounding added to the requested
    /// bytes.
    double rounding_ratio = 0;
};

/// The rates of a record, such as a device allocator, between two snapshots.
struct RecordRates {
    /// What it is: "device" or "planned".
    std::string of;
    /// Its `id`.
    std::uint64_t id = 0;
    /// The growth of each of its totals a second, by the name of the field. "hit_ratio" is the part
    /// of the requests between the snapshots that were served without the device or the pool; 1 if
    /// there were none.
    std::map<std::string, double> values;
};

/// The rates of a process between two snapshots.
struct ProcessRates {
    /// The time between the snapshots, in seconds.
    double seconds = 0;
    /// Minor page faults a second.
    double minor_faults = 0;
    /// The pools that are in both snapshots.
    std::vector<PoolRates> pools;
    /// The device allocators that are in both snapshots.
    std::vector<RecordRates> devices;
    /// The planned arenas that are in both snapshots.
    std::vector<RecordRates> planned;
};

/// Returns the rates between two snapshots of the same process. A value that decreased, as when
/// another process got the same number, counts as 0.
TENSORPOOL_API ProcessRates difference(const ProcessSnapshot& older, const ProcessSnapshot& newer);
/// Returns one JSON object whose keys are the names of the fields of ProcessRates. The number of a
/// record is under what it is, beside its values.
TENSORPOOL_API std::string to_json(const ProcessRates& rates);

}  // namespace tensorpool
