#include "statistics/sums/planned_statistics.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"
#include "statistics/sums/counter_words.hpp"

namespace tensorpool::statistics {
namespace {

using State = PlannedArenaStatistics::State;

/// Limits the sum of the reasons to the number of requests that went to the pool.
void bound_reasons(PlannedArenaStatistics& figures) noexcept {
    std::uint64_t left = figures.from_pool;
    for (std::uint64_t* const reason :
         {&figures.too_large, &figures.out_of_order, &figures.unknown, &figures.still_in_use}) {
        *reason = std::min(*reason, left);
        left -= *reason;
    }
}

}  // namespace

PlannedArenaStatistics figures_of(const PlannedRecord& planned) noexcept {
    PlannedArenaStatistics figures;
    figures.id = read(planned.id);
    load_name(planned.name, figures.name);
    // Another process may have overwritten the record.
    figures.state = static_cast<State>(
        std::min(read(planned.state), static_cast<std::uint64_t>(State::serving)));
    const PlannedTotals& totals = planned.totals;
    const std::uint64_t freed =
        read_first(totals.freed_bytes) + read_first(totals.freed_elsewhere_bytes);
    const std::uint64_t pool_freed =
        read_first(totals.pool_freed_bytes) + read_first(totals.pool_freed_elsewhere_bytes);
    add_counters(figures, totals, Reading::first);
    add_counters(figures, totals, Reading::second);
    figures.pool_in_use_bytes = above(read(totals.pool_bytes), pool_freed);
    figures.in_use_bytes =
        std::min(above(read(totals.served_bytes), freed), figures.capacity_bytes);
    bound_reasons(figures);
    return figures;
}

}  // namespace tensorpool::statistics
