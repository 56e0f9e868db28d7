#pragma once

#include <tensorpool/process_snapshot.hpp>

#include "statistics/records/record_table.hpp"

/// The tables of what is said of a process as a whole, and of a thread of a pool. All is computed,
/// or comes from the system.
namespace tensorpool::snapshots {

namespace processes {

using enum statistics::MetricKind;
using statistics::Family;
using statistics::Field;

inline constexpr Field fields[] = {
    {"committed_bytes", "bytes", gauge,
     "Bytes committed by all pools, arenas, scratches and planned arenas of the process.",
     "tensorpool_process_committed_bytes"},
    {"minor_faults", "faults", total,
     "Minor page faults of the whole process, as the system counts them.",
     "tensorpool_process_minor_faults_total"},
    {"resident_bytes", "bytes", gauge,
     "Bytes of the whole process that are in memory, as the system counts them.",
     "tensorpool_process_resident_bytes"},
    {"failed_misuse", "checks", total, "Failed checks of an invalid pointer or size."},
    {"failed_leaks", "checks", total,
     "Failed checks of blocks still in use when a pool with checks was destroyed."},
    {"failed_threads", "checks", total,
     "Failed checks of an object used by a thread that does not own it."},
    {"failed_scope_orders", "checks", total, "Statistics scopes that ended out of order."},
};
inline constexpr Family families[] = {
    {"tensorpool_checks_failed_total",
     total,
     "Failed checks.",
     "kind",
     Family::number,
     "misuse|leak|thread|scope_order",
     {3, 4, 5, 6}},
};
inline constexpr statistics::RecordTable table = {
    .name = "processes", .of = "process", .fields = fields, .families = families};

inline std::array<std::uint64_t, std::size(fields)> values_of(
    const ProcessSnapshot& process) noexcept {
    return {process.committed_bytes,    process.minor_faults, process.resident_bytes,
            process.failed_misuse,      process.failed_leaks, process.failed_threads,
            process.failed_scope_orders};
}

}  // namespace processes

namespace threads {

using enum statistics::MetricKind;
using statistics::Column;

inline constexpr statistics::Field fields[] = {
    {"thread", "number", gauge,
     "System's number of the thread; 0 for threads that ended or have no cache."},
    {"pool", "number", gauge, "Number of the pool."},
    {"allocations", "calls", total, "Blocks that the thread allocated."},
    {"deallocations", "calls", total, "Blocks that the thread freed."},
    {"parked_bytes", "bytes", gauge, "Free bytes in the thread's magazines."},
};
inline constexpr Column columns[] = {
    {.title = "THREAD", .show = Column::name, .width = 15},
    {.title = "TID", .show = Column::number, .value = 0, .width = 7},
    {.title = "POOL", .show = Column::reference, .value = 1, .of_kind = "pools", .width = 12},
    {"ALLOC/s", Column::rate, 2},
    {"FREE/s", Column::rate, 3},
    {"PARKED", Column::size, 4},
    {"HIGHEST", Column::highest, 4},
    {"ALLOCS", Column::count, 2},
    {"FREES", Column::count, 3},
};
inline constexpr statistics::RecordTable table = {
    .name = "threads", .of = "thread", .title = "threads", .fields = fields, .columns = columns};

inline std::array<std::uint64_t, std::size(fields)> values_of(
    const ThreadStatistics& thread) noexcept {
    return {thread.thread, thread.pool, thread.allocations, thread.deallocations,
            thread.parked_bytes};
}

}  // namespace threads
}  // namespace tensorpool::snapshots
