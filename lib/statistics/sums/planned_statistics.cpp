#include "statistics/sums/planned_statistics.hpp"

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

/// Bytes that came back, from the plan and from the pool.
struct Freed {
    explicit Freed(const PlannedTotals& totals) noexcept
        : of_plan(read_first(totals.freed_bytes) + read_first(totals.freed_elsewhere_bytes)),
          of_pool(read_first(totals.pool_freed_bytes) +
                  read_first(totals.pool_freed_elsewhere_bytes)) {}

    std::uint64_t of_plan;
    std::uint64_t of_pool;
};

/// The reasons together are never more than all that went to the pool.
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
    // Another process may have scribbled there.
    figures.state = static_cast<State>(
        std::min(read(planned.state), static_cast<std::uint64_t>(State::serving)));
    const PlannedTotals& totals = planned.totals;
    const Freed freed(totals);
    add_counters(figures, totals, Reading::first);
    add_counters(figures, totals, Reading::second);
    figures.pool_in_use_bytes = above(read(totals.pool_bytes), freed.of_pool);
    figures.in_use_bytes =
        std::min(above(read(totals.served_bytes), freed.of_plan), figures.capacity_bytes);
    bound_reasons(figures);
    return figures;
}

}  // namespace tensorpool::statistics
