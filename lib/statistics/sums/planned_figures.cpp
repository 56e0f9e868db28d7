#include "statistics/sums/planned_figures.hpp"

#include <algorithm>

#include "statistics/segment/name.hpp"

namespace tensorpool::statistics {
namespace {

using State = PlannedArenaStatistics::State;

// Relaxed: each is a figure of its own.
std::uint64_t read(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}
// What must not be seen before what it is part of. Pairs with the release additions of the totals.
std::uint64_t read_first(const Counter& counter) noexcept {
    return counter.load(std::memory_order_acquire);
}

std::uint64_t above(std::uint64_t a, std::uint64_t b) noexcept {
    return a > b ? a - b : 0;
}

void add_in_use(PlannedArenaStatistics& figures, const PlannedTotals& totals) noexcept {
    const std::uint64_t freed =
        read_first(totals.freed_bytes) + read_first(totals.freed_elsewhere_bytes);
    const std::uint64_t pool_freed =
        read_first(totals.pool_freed_bytes) + read_first(totals.pool_freed_elsewhere_bytes);
    figures.in_use_bytes = above(read(totals.served_bytes), freed);
    figures.pool_in_use_bytes = above(read(totals.pool_bytes), pool_freed);
    figures.capacity_bytes = read(totals.capacity_bytes);
    figures.in_use_bytes = std::min(figures.in_use_bytes, figures.capacity_bytes);
}

/// The reasons together are never more than all that went to the pool.
void add_requests(PlannedArenaStatistics& figures, const PlannedTotals& totals) noexcept {
    figures.too_large = read_first(totals.too_large);
    figures.out_of_order = read_first(totals.out_of_order);
    figures.unknown = read_first(totals.unknown);
    figures.still_in_use = read_first(totals.still_in_use);
    figures.from_pool = read(totals.from_pool);
    figures.served = read(totals.served);
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
    // Another process may have scribbled there.
    figures.state = static_cast<State>(
        std::min(read(planned.state), static_cast<std::uint64_t>(State::serving)));
    add_in_use(figures, planned.totals);
    add_requests(figures, planned.totals);
    figures.buffers = read(planned.totals.buffers);
    figures.lower_bound_bytes = read(planned.totals.lower_bound_bytes);
    figures.pool_peak_bytes = read(planned.totals.pool_peak_bytes);
    figures.plan_peak_bytes = read(planned.totals.plan_peak_bytes);
    figures.iterations = read(planned.totals.iterations);
    figures.plans = read(planned.totals.plans);
    figures.planning_ns = read(planned.totals.planning_ns);
    return figures;
}

}  // namespace tensorpool::statistics
