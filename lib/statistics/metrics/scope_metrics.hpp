#pragma once

#include <tensorpool/scope_statistics.hpp>

#include "statistics/metrics/metric.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Metrics of all scopes of one name.
template <>
struct Metrics<ScopeStatistics> {
    using enum MetricKind;
    using Of = ScopeStatistics;
    static constexpr const char* of = "scope";
    static constexpr Metric<Of, ScopeRecord> all[] = {
        {"calls", &Of::calls, "scopes", total, "Scopes of this name that ended.",
         "tensorpool_scope_calls_total", &ScopeRecord::calls},
        {"open", &Of::open, "scopes", gauge, "Scopes that began and have not ended.",
         "tensorpool_scope_open", &ScopeRecord::open},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated in them.",
         "tensorpool_scope_allocations_total", &ScopeRecord::allocations},
        {"deallocations", &Of::deallocations, "calls", total, "Blocks freed in them.",
         "tensorpool_scope_deallocations_total", &ScopeRecord::deallocations},
        {"requested_bytes", &Of::requested_bytes, "bytes", total, "Bytes requested in them.",
         "tensorpool_scope_requested_bytes_total", &ScopeRecord::requested_bytes},
        {"allocated_bytes", &Of::allocated_bytes, "bytes", total, "Bytes allocated in them.",
         "tensorpool_scope_allocated_bytes_total", &ScopeRecord::allocated_bytes},
        {"deallocated_bytes", &Of::deallocated_bytes, "bytes", total,
         "Bytes of the blocks freed in them.", "tensorpool_scope_deallocated_bytes_total",
         &ScopeRecord::deallocated_bytes},
        {"peak_bytes", &Of::peak_bytes, "bytes", peak,
         "Highest growth of the bytes in use in one of them; may lag by what a thread parks.",
         "tensorpool_scope_peak_bytes", &ScopeRecord::peak_bytes},
        {"out_of_order", &Of::out_of_order, "scopes", total,
         "Scopes that ended before one inside them, or on another thread.",
         "tensorpool_scope_out_of_order_total", &ScopeRecord::out_of_order},
    };
};

}  // namespace tensorpool::statistics
