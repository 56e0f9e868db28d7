#pragma once

#include <tensorpool/stash_statistics.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::statistics {

/// Counters of what rests under one name. Several threads may add to them at once. Contains no
/// pointers because it lies in the shared segment.
struct StashTotals {
    Counter tensors = 0;
    Counter memory_bytes = 0;
    Counter stashed_bytes = 0;
    Counter compressed_bytes = 0;
    Counter spilled_bytes = 0;
    Counter hits = 0;
    Counter misses = 0;
    Counter stashes = 0;
    Counter spills = 0;
    Counter restores = 0;
    Counter failures = 0;
    Counter stash_ns = 0;
    Counter restore_ns = 0;
};

/// What rests under one name: stashes, a map, or frozen blocks.
struct alignas(64) StashRecord {
    Counter id;
    Name name;
    Counter kind;    // a StashStatistics::Kind
    Counter budget;  // the number of the budget that is charged; 0 for none
    StashTotals totals;

    using Statistics = StashStatistics;
    static const RecordKind layout;
};

namespace stashes {

using enum MetricKind;
using Of = StashRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other object of the process has.", "",
     offsetof(Of, id)},
    {"budget", "number", gauge,
     "Number of the budget that is charged for what rests in memory; 0 for none.", "",
     offsetof(Of, budget)},
    {"tensors", "tensors", gauge, "Stashes, tensors in the map, or frozen blocks.",
     "tensorpool_stash_tensors", offsetof(Of, totals.tensors)},
    {"memory_bytes", "bytes", gauge, "Uncompressed bytes of these tensors in memory.",
     "tensorpool_stash_memory_bytes", offsetof(Of, totals.memory_bytes)},
    {"stashed_bytes", "bytes", gauge, "Uncompressed size of what is at rest.",
     "tensorpool_stash_stashed_bytes", offsetof(Of, totals.stashed_bytes)},
    {"compressed_bytes", "bytes", gauge, "Memory that compressed content takes.", "",
     offsetof(Of, totals.compressed_bytes)},
    {"spilled_bytes", "bytes", gauge, "Bytes of spilled content in files.", "",
     offsetof(Of, totals.spilled_bytes)},
    {"hits", "calls", total, "Requests of a map that found a tensor in memory.",
     "tensorpool_stash_hits_total", offsetof(Of, totals.hits)},
    {"misses", "calls", total, "Requests of a map, or page faults, that found a tensor at rest.",
     "tensorpool_stash_misses_total", offsetof(Of, totals.misses)},
    {"stashes", "times", total, "Times that a tensor was put to rest.",
     "tensorpool_stash_stashes_total", offsetof(Of, totals.stashes)},
    {"spills", "times", total,
     "Times that content went to a file; of a map, after it was compressed in memory.",
     "tensorpool_stash_spills_total", offsetof(Of, totals.spills)},
    {"restores", "times", total, "Times that a tensor was brought back as a whole.",
     "tensorpool_stash_restores_total", offsetof(Of, totals.restores)},
    {"failures", "times", total, "Times that a tensor could not be put to rest or brought back.",
     "tensorpool_stash_failures_total", offsetof(Of, totals.failures)},
    {"stash_ns", "nanoseconds", total,
     "Time of putting to rest, spilling included, on all threads.", "",
     offsetof(Of, totals.stash_ns)},
    {"restore_ns", "nanoseconds", total,
     "Time of bringing back, page faults included, on all threads.", "",
     offsetof(Of, totals.restore_ns)},
    {.name = "takes", .unit = "bytes", .use = Use::derived},
};
inline constexpr IndexOf<fields> at;
inline constexpr Rule derivations[] = {
    {Rule::plus, at("takes"), at("compressed_bytes")},
    {Rule::plus, at("takes"), at("spilled_bytes")},
};
inline constexpr Family families[] = {
    divided("tensorpool_stash_rest_bytes", gauge,
            "Bytes that what rests takes: compressed in memory, or in files.", "place",
            "memory|file", {at("compressed_bytes"), at("spilled_bytes")}),
    single("tensorpool_stash_seconds_total", total, "Time of putting to rest, spilling included.",
           Family::seconds, at("stash_ns")),
    single("tensorpool_stash_restore_seconds_total", total,
           "Time of bringing back, page faults included.", Family::seconds, at("restore_ns")),
};
inline constexpr Column columns[] = {
    {.title = "AT REST", .show = Column::name, .width = 14},
    {"KIND", Column::choice, no_field, no_field, "",
     "Stashes, a map of them, or blocks frozen in place."},
    {"COUNT", Column::count, at("tensors")},
    {"IN MEM", Column::size, at("memory_bytes")},
    {"RESTING", Column::size, at("stashed_bytes")},
    {"TAKES", Column::size, at("takes"), no_field, "", "Compressed, and in files."},
    {"RATIO", Column::part, at("takes"), at("stashed_bytes"), "", "TAKES as a part of RESTING."},
    {"MISSES", Column::count, at("misses")},
    {"IN FILES", Column::size, at("spilled_bytes")},
    {"RESTORES", Column::count, at("restores")},
    {"FAILED", Column::count, at("failures")},
    {"STASH s", Column::seconds, at("stash_ns")},
    {"BACK s", Column::seconds, at("restore_ns")},
    {"BUDGET", Column::reference, at("budget"), no_field, "budgets"},
};
inline constexpr RecordTable table = {
    .name = "stashes",
    .of = "stash",
    .label = "stash",
    .title = "at rest; the ratio is that of compressed and spilled bytes to the size",
    .choice = {"kind", offsetof(Of, kind), "stashes|map|frozen"},
    // A program may have a budget for each request.
    .shown_if = at("tensors"),
    .ends_with = at("budget"),
    .ends_with_kind = "budgets",
    .stays = static_cast<std::uint8_t>(StashStatistics::Kind::map),
    .shows_other = false,
    .fields = fields,
    .derivations = derivations,
    .families = families,
    .columns = columns};

}  // namespace stashes

inline constexpr RecordKind StashRecord::layout = kind_of<StashRecord>(512, stashes::table);

}  // namespace tensorpool::statistics
