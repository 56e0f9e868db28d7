#pragma once

#include <tensorpool/scope_statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// What ended scopes of one name did, on all threads.
struct alignas(64) ScopeRecord {
    Counter id;
    Name name;
    Counter calls;
    Counter open;  // scopes that began and have not ended
    Counter allocations;
    Counter deallocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocated_bytes;
    Counter peak_bytes;    // the highest net growth within one of them
    Counter out_of_order;  // scopes that ended before one inside them, or on another thread

    using Statistics = ScopeStatistics;
    static const RecordKind layout;
};

namespace scopes {

using enum MetricKind;
using Of = ScopeRecord;

inline constexpr Field fields[] = {
    {"calls", "scopes", total, "Scopes of this name that ended.", "tensorpool_scope_calls_total",
     offsetof(Of, calls)},
    {"open", "scopes", gauge, "Scopes that began and have not ended.", "tensorpool_scope_open",
     offsetof(Of, open)},
    {"allocations", "calls", total, "Blocks allocated in them.",
     "tensorpool_scope_allocations_total", offsetof(Of, allocations)},
    {"deallocations", "calls", total, "Blocks freed in them.",
     "tensorpool_scope_deallocations_total", offsetof(Of, deallocations)},
    {"requested_bytes", "bytes", total, "Bytes requested in them.",
     "tensorpool_scope_requested_bytes_total", offsetof(Of, requested_bytes)},
    {"allocated_bytes", "bytes", total, "Bytes allocated in them.",
     "tensorpool_scope_allocated_bytes_total", offsetof(Of, allocated_bytes)},
    {"deallocated_bytes", "bytes", total, "Bytes of the blocks freed in them.",
     "tensorpool_scope_deallocated_bytes_total", offsetof(Of, deallocated_bytes)},
    {"peak_bytes", "bytes", peak,
     "Highest growth of the bytes in use in one of them; may lag by what a thread parks.",
     "tensorpool_scope_peak_bytes", offsetof(Of, peak_bytes)},
    {"out_of_order", "scopes", total,
     "Scopes that ended before one inside them, or on another thread.",
     "tensorpool_scope_out_of_order_total", offsetof(Of, out_of_order)},
    {.name = "growth", .unit = "bytes", .use = Use::derived},
    {.name = "bytes_a_call", .unit = "bytes", .use = Use::derived},
};
inline constexpr IndexOf<fields> at;
inline constexpr Rule derivations[] = {
    {Rule::plus, at("growth"), at("allocated_bytes")},
    {Rule::minus_modulo, at("growth"), at("deallocated_bytes")},
    {Rule::plus, at("bytes_a_call"), at("allocated_bytes")},
    {Rule::divide, at("bytes_a_call"), at("calls")},
};
inline constexpr Column columns[] = {
    {.title = "SCOPE", .show = Column::name, .width = 16},
    {"PEAK", Column::size, at("peak_bytes")},
    {"CALLS", Column::count, at("calls")},
    {"OPEN", Column::count, at("open")},
    {"GROWTH", Column::growth, at("growth")},
    {"ALLOCS", Column::count, at("allocations")},
    {"BYTES/CALL", Column::size, at("bytes_a_call")},
    {"MISORDER", Column::count, at("out_of_order")},
};
inline constexpr RecordTable table = {.name = "scopes",
                                      .of = "scope",
                                      .label = "scope",
                                      .title = "scopes; peaks may lag by what magazines hold",
                                      .fields = fields,
                                      .derivations = derivations,
                                      .columns = columns};

}  // namespace scopes

inline constexpr RecordKind ScopeRecord::layout = kind_of<ScopeRecord>(65, scopes::table);

}  // namespace tensorpool::statistics
