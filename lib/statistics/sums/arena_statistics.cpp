#include "statistics/sums/arena_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/segment/segment.hpp"
#include "statistics/segment/segment_image.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {

ArenaStatistics statistics_of(const ArenaRecord& arena) noexcept {
    using Kind = ArenaStatistics::Kind;
    ArenaStatistics statistics;
    statistics.id = read(arena.id);
    load_name(arena.name, statistics.name);
    // Another process may have overwritten the record.
    statistics.kind =
        static_cast<Kind>(std::min(read(arena.kind), static_cast<std::uint64_t>(Kind::scratch)));
    statistics.thread = read(arena.thread);
    statistics.releases = read(arena.words.releases);
    for (const Counter& counted : arena.words.allocations) statistics.allocations += read(counted);
    add_counters(statistics, arena.totals, Reading::second);
    if (statistics.kind == Kind::growing && statistics.id != 0) {
        // The last page may extend beyond a limit that is not a whole number of pages. (`other`,
        // whose number is 0, sums up arenas with and without a limit.)
        statistics.capacity_bytes = std::min(statistics.capacity_bytes, statistics.limit_bytes);
    }
    if (statistics.kind == Kind::scratch) statistics.reserved_bytes = statistics.capacity_bytes;
    statistics.used_bytes = read(arena.words.used) & used_mask;
    // Pending claims of an arena lie above what is committed and were not given to callers. The
    // owner may also be between the writes of two counters.
    if (statistics.kind != Kind::measuring) {
        statistics.used_bytes = std::min(statistics.used_bytes, statistics.capacity_bytes);
    }
    // Read after `used`: a release first raises the peak and then lowers `used`.
    statistics.peak_used_bytes = std::max(
        {read(arena.totals.peak_used_bytes), read(arena.words.high), statistics.used_bytes});
    return statistics;
}

std::size_t bytes_above_peaks_of_arenas() noexcept {
    const SegmentHeader* const header = segment().header();
    if (header == nullptr) return 0;
    SegmentImage image(header);
    image.count();
    std::size_t bytes = 0;
    for (const ArenaRecord& arena : image.records<ArenaRecord>()) {
        if (read(arena.id) == 0) continue;
        const std::uint64_t charged = read(arena.totals.charged_bytes);
        const std::uint64_t touched =
            std::max(statistics_of(arena).peak_used_bytes, read(arena.totals.touched_bytes));
        bytes += charged - std::min(charged, touched);
    }
    return bytes;
}

}  // namespace tensorpool::statistics
