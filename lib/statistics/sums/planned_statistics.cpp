#include "statistics/sums/planned_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

using State = PlannedArenaStatistics::State;

/// Limits the sum of the reasons to the number of requests that went to the pool.
void bound_reasons(PlannedArenaStatistics& statistics) noexcept {
    std::uint64_t left = statistics.from_pool;
    for (std::uint64_t* const reason : {&statistics.too_large, &statistics.out_of_order,
                                        &statistics.unknown, &statistics.still_in_use}) {
        *reason = std::min(*reason, left);
        left -= *reason;
    }
}

}  // namespace

PlannedArenaStatistics statistics_of(const PlannedRecord& planned) noexcept {
    PlannedArenaStatistics statistics;
    statistics.id = read(planned.id);
    load_name(planned.name, statistics.name);
    // Another process may have overwritten the record.
    statistics.state = static_cast<State>(
        std::min(read(planned.state), static_cast<std::uint64_t>(State::serving)));
    const PlannedTotals& totals = planned.totals;
    const std::uint64_t freed =
        read_first(totals.freed_bytes) + read_first(totals.freed_elsewhere_bytes);
    const std::uint64_t pool_freed =
        read_first(totals.pool_freed_bytes) + read_first(totals.pool_freed_elsewhere_bytes);
    add_counters(statistics, totals, Reading::first);
    add_counters(statistics, totals, Reading::second);
    statistics.pool_in_use_bytes = above(read(totals.pool_bytes), pool_freed);
    statistics.in_use_bytes =
        std::min(above(read(totals.served_bytes), freed), statistics.capacity_bytes);
    bound_reasons(statistics);
    return statistics;
}

}  // namespace tensorpool::statistics
