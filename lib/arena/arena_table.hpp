#pragma once

#include <tensorpool/arena_statistics.hpp>
#include <tensorpool/detail/arena_words.hpp>

#include "statistics/records/record_table.hpp"
#include "statistics/segment/segment_layout.hpp"

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

/// The bits of ArenaWords::used that hold the bytes in use.
inline constexpr unsigned used_bits = 47;
inline constexpr std::uint64_t used_mask = (std::uint64_t{1} << used_bits) - 1;

/// One arena or one scratch.
struct alignas(64) ArenaRecord {
    Counter id;
    Name name;
    Counter kind;    // an ArenaStatistics::Kind
    Counter thread;  // of a scratch
    ArenaTotals totals;
    detail::ArenaWords words;  // the bits of used_mask in `used` are the bytes in use

    using Statistics = ArenaStatistics;
    static const RecordKind layout;
};

namespace arenas {

using enum MetricKind;
using Of = ArenaRecord;

inline constexpr Field fields[] = {
    {"id", "number", gauge, "Number that no other pool or arena of the process has.", "",
     offsetof(Of, id)},
    {"thread", "number", gauge,
     "System's number of the thread that owns the scratch; 0 for an arena.", "",
     offsetof(Of, thread)},
    {"allocations", "calls", total, "Blocks allocated.", "tensorpool_arena_allocations_total",
     offsetof(Of, words.allocations), "", false, 1 + detail::ArenaWords::counting_threads},
    {"releases", "times", total,
     "Number of times that memory was released: resets, releases to a mark, ends of scopes.",
     "tensorpool_arena_releases_total", offsetof(Of, words.releases)},
    {"used_bytes", "bytes", gauge, "Bytes allocated and not released, alignment included.",
     "tensorpool_arena_used_bytes", offsetof(Of, words.used), "", true, 1, used_bits},
    {"peak_used_bytes", "bytes", peak, "Highest number of bytes used at once.",
     "tensorpool_arena_peak_used_bytes", offsetof(Of, totals.peak_used_bytes)},
    {"capacity_bytes", "bytes", gauge, "Committed memory, or the size of the buffer.",
     "tensorpool_arena_capacity_bytes", offsetof(Of, totals.capacity_bytes)},
    {"peak_capacity_bytes", "bytes", peak, "Highest capacity.",
     "tensorpool_arena_peak_capacity_bytes", offsetof(Of, totals.peak_capacity_bytes)},
    {"reserved_bytes", "bytes", gauge, "Reserved address space, which takes no memory.",
     "tensorpool_arena_reserved_bytes", offsetof(Of, totals.reserved_bytes)},
    {"limit_bytes", "bytes", gauge, "Maximum of the capacity; 0 if there is no limit.", "",
     offsetof(Of, totals.limit_bytes)},
    {"growths", "times", total, "Number of times that memory was committed.",
     "tensorpool_arena_system_maps_total", offsetof(Of, totals.growths)},
    {"grown_bytes", "bytes", total, "Bytes committed by all growths.", "",
     offsetof(Of, totals.grown_bytes)},
    {"give_backs", "times", total, "Number of times that memory was returned to the system.", "",
     offsetof(Of, totals.give_backs)},
    {"given_back_bytes", "bytes", total, "Bytes returned to the system.",
     "tensorpool_arena_released_bytes_total", offsetof(Of, totals.given_back_bytes)},
    {"refusals", "calls", total, "Requests that could not be met.",
     "tensorpool_arena_allocation_failures_total", offsetof(Of, totals.refusals)},
    hidden("high", offsetof(Of, words.high)),
    hidden("untouched_bytes", offsetof(Of, totals.charged_bytes)),
    hidden("touched", offsetof(Of, totals.touched_bytes)),
};
inline constexpr IndexOf<fields> at;
inline constexpr std::uint8_t growing = Rule::only(0);
inline constexpr std::uint8_t measuring = 2;
inline constexpr std::uint8_t scratch = Rule::only(3);
inline constexpr Rule rules[] = {
    // The last page may extend beyond a limit that is not a whole number of pages. (`other` sums up
    // arenas with and without a limit.)
    {Rule::at_most, at("capacity_bytes"), at("limit_bytes"), growing},
    {Rule::copy, at("reserved_bytes"), at("capacity_bytes"), scratch},
    // Pending claims of an arena lie above what is committed and were not given to callers. The
    // owner may also be between the writes of two counters.
    {Rule::at_most, at("used_bytes"), at("capacity_bytes"), Rule::except(measuring)},
    // A release first raises the peak and then lowers `used`, which is read first.
    {Rule::at_least, at("peak_used_bytes"), at("high")},
    {Rule::at_least, at("peak_used_bytes"), at("used_bytes")},
    {Rule::at_least, at("touched"), at("peak_used_bytes")},
    {Rule::minus, at("untouched_bytes"), at("touched")},
};
inline constexpr Family families[] = {
    single("tensorpool_arena_limit_bytes", gauge, "Maximum of the capacity.", Family::limit,
           at("limit_bytes")),
};
inline constexpr Column columns[] = {
    {"NAME", Column::name},
    {.title = "KIND", .show = Column::choice, .width = 9},
    {"IN USE", Column::size, at("used_bytes")},
    {"CAPACITY", Column::size, at("capacity_bytes")},
    {"PEAK", Column::size, at("peak_used_bytes")},
    {"HIGHEST", Column::highest, at("used_bytes")},
    {"LIMIT", Column::limit, at("limit_bytes")},
    {"REFUSED", Column::count, at("refusals")},
    {"ALLOCS", Column::count, at("allocations")},
    {"GROWTHS", Column::count, at("growths")},
    {.title = "THREAD", .show = Column::number, .value = at("thread"), .width = 7},
};
inline constexpr RecordTable table = {
    .name = "arenas",
    .of = "arena",
    .label = "arena",
    .title = "arenas",
    .version = ArenaStatistics::current_version,
    .choice = {"kind", offsetof(Of, kind), "growing|buffer|measuring|scratch"},
    .apart = "scratches",
    .fields = fields,
    .rules = rules,
    .families = families,
    .columns = columns};

}  // namespace arenas

inline constexpr RecordKind ArenaRecord::layout = kind_of<ArenaRecord>(4096, arenas::table);

}  // namespace tensorpool::statistics
