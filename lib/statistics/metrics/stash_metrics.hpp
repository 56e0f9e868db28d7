#pragma once

#include <tensorpool/detail/counters.hpp>
#include <tensorpool/stash_statistics.hpp>

#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

using detail::Counter;

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

/// Metrics of memory at rest.
template <>
struct Metrics<StashStatistics> {
    using enum MetricKind;
    using Of = StashStatistics;
    using In = StashTotals;
    static constexpr const char* of = "stash";
    static constexpr Metric<Of, In> all[] = {
        {"id", &Of::id, "number", gauge, "Number that no other object of the process has."},
        {"budget", &Of::budget, "number", gauge,
         "Number of the budget that is charged for what rests in memory; 0 for none."},
        {"tensors", &Of::tensors, "tensors", gauge,
         "Stashes, tensors in the map, or frozen blocks.", "tensorpool_stash_tensors",
         &In::tensors},
        {"memory_bytes", &Of::memory_bytes, "bytes", gauge,
         "Uncompressed bytes of these tensors in memory.", "tensorpool_stash_memory_bytes",
         &In::memory_bytes},
        {"stashed_bytes", &Of::stashed_bytes, "bytes", gauge,
         "Uncompressed size of what is at rest.", "tensorpool_stash_stashed_bytes",
         &In::stashed_bytes},
        {"compressed_bytes", &Of::compressed_bytes, "bytes", gauge,
         "Memory that compressed content takes.", "", &In::compressed_bytes},
        {"spilled_bytes", &Of::spilled_bytes, "bytes", gauge, "Bytes of spilled content in files.",
         "", &In::spilled_bytes},
        {"hits", &Of::hits, "calls", total, "Requests of a map that found a tensor in memory.",
         "tensorpool_stash_hits_total", &In::hits},
        {"misses", &Of::misses, "calls", total,
         "Requests of a map, or page faults, that found a tensor at rest.",
         "tensorpool_stash_misses_total", &In::misses},
        {"stashes", &Of::stashes, "times", total, "Times that a tensor was put to rest.",
         "tensorpool_stash_stashes_total", &In::stashes},
        {"spills", &Of::spills, "times", total,
         "Times that content went to a file; of a map, after it was compressed in memory.",
         "tensorpool_stash_spills_total", &In::spills},
        {"restores", &Of::restores, "times", total,
         "Times that a tensor was brought back as a whole.", "tensorpool_stash_restores_total",
         &In::restores},
        {"failures", &Of::failures, "times", total,
         "Times that a tensor could not be put to rest or brought back.",
         "tensorpool_stash_failures_total", &In::failures},
        {"stash_ns", &Of::stash_ns, "nanoseconds", total,
         "Time of putting to rest, spilling included, on all threads.", "", &In::stash_ns},
        {"restore_ns", &Of::restore_ns, "nanoseconds", total,
         "Time of bringing back, page faults included, on all threads.", "", &In::restore_ns},
    };
};

}  // namespace tensorpool::statistics
