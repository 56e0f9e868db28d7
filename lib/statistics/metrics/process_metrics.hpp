#pragma once

#include <tensorpool/process_snapshot.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// Of a process as a whole. All are computed, or come from the system.
template <>
struct Metrics<ProcessSnapshot> {
    using enum MetricKind;
    using Of = ProcessSnapshot;
    static constexpr const char* of = "process";
    static constexpr Metric<Of> all[] = {
        {"committed_bytes", &Of::committed_bytes, "bytes", gauge,
         "Committed by all pools, arenas, scratches and planned arenas of the process.",
         "tensorpool_process_committed_bytes"},
        {"minor_faults", &Of::minor_faults, "faults", total,
         "Minor page faults of the whole process, as the system counts them.",
         "tensorpool_process_minor_faults_total"},
        {"resident_bytes", &Of::resident_bytes, "bytes", gauge,
         "Of the whole process in memory, as the system counts it.",
         "tensorpool_process_resident_bytes"},
        {"failed_misuse", &Of::failed_misuse, "checks", total,
         "Checks that fired at a pointer or a size that does not fit."},
        {"failed_leaks", &Of::failed_leaks, "checks", total,
         "Checks that fired at blocks left when a pool with checks went."},
        {"failed_threads", &Of::failed_threads, "checks", total,
         "Checks that fired when another thread used what belongs to one."},
        {"failed_scope_orders", &Of::failed_scope_orders, "checks", total,
         "Statistics scopes that ended out of order."},
    };
};

/// Of one thread of one pool. All are computed.
template <>
struct Metrics<ThreadStatistics> {
    using enum MetricKind;
    using Of = ThreadStatistics;
    static constexpr const char* of = "thread";
    static constexpr Metric<Of> all[] = {
        {"thread", &Of::thread, "number", gauge,
         "The system's number of the thread; 0 for those that ended or have no cache."},
        {"pool", &Of::pool, "number", gauge, "The pool's id."},
        {"allocations", &Of::allocations, "calls", total, "Blocks handed out to it."},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks that it gave back."},
        {"parked_bytes", &Of::parked_bytes, "bytes", gauge, "Free, in its magazines."},
    };
};

}  // namespace tensorpool::statistics
