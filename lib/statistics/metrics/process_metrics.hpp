#pragma once

#include <tensorpool/process_snapshot.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// Metrics of a process as a whole. All are computed or come from the system.
template <>
struct Metrics<ProcessSnapshot> {
    using enum MetricKind;
    using Of = ProcessSnapshot;
    static constexpr const char* of = "process";
    static constexpr Metric<Of> all[] = {
        {"committed_bytes", &Of::committed_bytes, "bytes", gauge,
         "Bytes committed by all pools, arenas, scratches and planned arenas of the process.",
         "tensorpool_process_committed_bytes"},
        {"minor_faults", &Of::minor_faults, "faults", total,
         "Minor page faults of the whole process, as the system counts them.",
         "tensorpool_process_minor_faults_total"},
        {"resident_bytes", &Of::resident_bytes, "bytes", gauge,
         "Bytes of the whole process that are in memory, as the system counts them.",
         "tensorpool_process_resident_bytes"},
        {"failed_misuse", &Of::failed_misuse, "checks", total,
         "Failed checks of an invalid pointer or size."},
        {"failed_leaks", &Of::failed_leaks, "checks", total,
         "Failed checks of blocks still in use when a pool with checks was destroyed."},
        {"failed_threads", &Of::failed_threads, "checks", total,
         "Failed checks of an object used by a thread that does not own it."},
        {"failed_scope_orders", &Of::failed_scope_orders, "checks", total,
         "Statistics scopes that ended out of order."},
    };
};

/// Metrics of one thread of one pool. All are computed.
template <>
struct Metrics<ThreadStatistics> {
    using enum MetricKind;
    using Of = ThreadStatistics;
    static constexpr const char* of = "thread";
    static constexpr Metric<Of> all[] = {
        {"thread", &Of::thread, "number", gauge,
         "System's number of the thread; 0 for threads that ended or have no cache."},
        {"pool", &Of::pool, "number", gauge, "Number of the pool."},
        {"allocations", &Of::allocations, "calls", total, "Blocks that the thread allocated."},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks that the thread freed."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge,
         "Free bytes in the thread's magazines."},
    };
};

}  // namespace tensorpool::statistics
