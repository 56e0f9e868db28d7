#pragma once

#include <atomic>
#include <cstdint>

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/detail/counters.hpp>

#include "base/atomics.hpp"
#include "statistics/metrics/metric.hpp"

namespace tensorpool::statistics {

/// Counters of an arena or a scratch, except the bytes in use. Only the thread that changes the
/// memory of the arena writes them; any thread or process may read them. Contains no pointers
/// because it lies in the shared segment.
struct ArenaTotals {
    Counter capacity_bytes = 0;
    Counter peak_capacity_bytes = 0;
    Counter reserved_bytes = 0;
    Counter limit_bytes = 0;      // maximum of the capacity; 0 means no limit
    Counter peak_used_bytes = 0;  // as of the last release
    Counter growths = 0;
    Counter grown_bytes = 0;
    Counter give_backs = 0;
    Counter given_back_bytes = 0;
    // The part of the capacity that counts against the commit budget, and the end of the part that
    // was touched in advance. Charged memory above that end and above the peak was never touched.
    Counter charged_bytes = 0;
    Counter touched_bytes = 0;
    Counter refusals =
        0;  // by atomic addition: the only counter that several threads may write at once

    void count_growth(std::uint64_t bytes) noexcept {
        detail::add(capacity_bytes, bytes);
        base::raise_to(peak_capacity_bytes, capacity_bytes.load(std::memory_order_relaxed));
        detail::add(growths, 1);
        detail::add(grown_bytes, bytes);
    }
    void count_give_back(std::uint64_t bytes) noexcept {
        capacity_bytes.store(capacity_bytes.load(std::memory_order_relaxed) - bytes,
                             std::memory_order_relaxed);
        detail::add(give_backs, 1);
        detail::add(given_back_bytes, bytes);
    }
    void count_refusal() noexcept { refusals.fetch_add(1, std::memory_order_relaxed); }
};

/// Metrics of an arena or a scratch.
template <>
struct Metrics<ArenaStatistics> {
    using enum MetricKind;
    using Of = ArenaStatistics;
    static constexpr const char* of = "arena";
    static constexpr Metric<Of, ArenaTotals> all[] = {
        {"id", &Of::id, "number", gauge, "Number that no other pool or arena of the process has."},
        {"thread", &Of::thread, "number", gauge,
         "System's number of the thread that owns the scratch; 0 for an arena."},
        {"allocations", &Of::allocations, "calls", total, "Blocks allocated.",
         "tensorpool_arena_allocations_total"},
        {"releases", &Of::releases, "times", total,
         "Number of times that memory was released: resets, releases to a mark, ends of scopes.",
         "tensorpool_arena_releases_total"},
        {"used_bytes", &Of::used_bytes, "bytes", gauge,
         "Bytes allocated and not released, alignment included.", "tensorpool_arena_used_bytes"},
        {"peak_used_bytes", &Of::peak_used_bytes, "bytes", peak,
         "Highest number of bytes used at once.", "tensorpool_arena_peak_used_bytes",
         &ArenaTotals::peak_used_bytes},
        {"capacity_bytes", &Of::capacity_bytes, "bytes", gauge,
         "Committed memory, or the size of the buffer.", "tensorpool_arena_capacity_bytes",
         &ArenaTotals::capacity_bytes},
        {"peak_capacity_bytes", &Of::peak_capacity_bytes, "bytes", peak, "Highest capacity.",
         "tensorpool_arena_peak_capacity_bytes", &ArenaTotals::peak_capacity_bytes},
        {"reserved_bytes", &Of::reserved_bytes, "bytes", gauge,
         "Reserved address space, which takes no memory.", "tensorpool_arena_reserved_bytes",
         &ArenaTotals::reserved_bytes},
        {"limit_bytes", &Of::limit_bytes, "bytes", gauge,
         "Maximum of the capacity; 0 if there is no limit.", "", &ArenaTotals::limit_bytes},
        {"growths", &Of::growths, "times", total, "Number of times that memory was committed.",
         "tensorpool_arena_system_maps_total", &ArenaTotals::growths},
        {"grown_bytes", &Of::grown_bytes, "bytes", total, "Bytes committed by all growths.", "",
         &ArenaTotals::grown_bytes},
        {"give_backs", &Of::give_backs, "times", total,
         "Number of times that memory was returned to the system.", "", &ArenaTotals::give_backs},
        {"given_back_bytes", &Of::given_back_bytes, "bytes", total, "Bytes returned to the system.",
         "tensorpool_arena_released_bytes_total", &ArenaTotals::given_back_bytes},
        {"refusals", &Of::refusals, "calls", total, "Requests that could not be met.",
         "tensorpool_arena_allocation_failures_total", &ArenaTotals::refusals},
    };
};

}  // namespace tensorpool::statistics
