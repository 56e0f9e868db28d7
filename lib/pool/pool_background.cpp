#include <algorithm>

#include "blocks/thread_registry.hpp"
#include "platform/threads/own_thread.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"
#include "statistics/commit_budget.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

// With `BackgroundTrim::automatic`, the trimmer leaves this much free memory where it is.
constexpr std::uint64_t max_free_untrimmed = std::uint64_t{64} << 20;
// A pass over the pools costs microseconds. Memory that was free for a whole period is returned at
// most a twentieth of the period later.
constexpr std::uint64_t looks_in_a_period = 20;
// The minimum pause between passes. With short periods, memory is returned later than that.
constexpr std::uint64_t min_pause_ns = 10'000'000;
// A thread touches 2 GiB of memory in a second at most.
constexpr std::uint64_t bytes_touched_a_ns = 2;
// If so many times as much is available as a pool holds free, no limit is near.
constexpr std::size_t much_more = 16;

}  // namespace

void Pool::end_slow_path(const pages::Changes& changes) noexcept {
    report(changes);
    background_trimmer().wake_if_asleep();
    if (offer_pace_.is_due(unoffered_bytes(), statistics::commit_budget().ceiling())) [[unlikely]]
        offer_if_short();
}

// The exact sum over all threads, which only the trimmer's thread takes.
bool Pool::has_much_to_trim() const noexcept {
    if (options_.retain.background == BackgroundTrim::on) return true;
    const std::uint64_t in_use = counters_.in_use_bytes();
    return capacity() - std::min<std::uint64_t>(capacity(), in_use) > max_free_untrimmed;
}

// If no call was made during a period, everything that is free now was free for the whole period,
// whether it lies in magazines, depots, the large-block cache or the page heap.
std::uint64_t Pool::look_in_background(Moment moment, pages::Changes& changes) noexcept {
    if (options_.retain.background == BackgroundTrim::off) return platform::no_timeout;
    const std::uint64_t calls = counters_.allocations() + counters_.deallocations();
    if (calls != idle_.calls) idle_ = {.calls = calls, .since_ns = moment.now_ns};
    if (idle_.is_trimmed) return platform::no_timeout;
    const std::uint64_t whole = std::uint64_t{options_.retain.milliseconds} * 1'000'000;
    const std::uint64_t period = moment.is_memory_short ? whole / 10 : whole;
    // A clock that went back ends the period, as in `Retention`.
    const std::uint64_t idle_for =
        moment.now_ns < idle_.since_ns ? period : moment.now_ns - idle_.since_ns;
    // What others take cannot be seen from here, except by looking more often as less is available.
    std::uint64_t max_pause = platform::no_timeout;
    if (const std::size_t bytes = unoffered_bytes(); bytes >= OfferPace::min_bytes) {
        if (bytes > moment.available_bytes) offer_free(changes);
        if (moment.available_bytes / much_more < bytes) {
            max_pause = std::max(moment.available_bytes / bytes_touched_a_ns, min_pause_ns);
        }
    }
    if (!has_much_to_trim()) {
        if (idle_for >= period) return max_pause;
        return std::min(std::max(period - idle_for, min_pause_ns), max_pause);
    }
    if (idle_for >= period) {
        idle_.is_trimmed = empty_caches(blocks::Bucket::Magazines::destroy, changes);
        heap_.give_back(SIZE_MAX, changes);
        buckets_.drop_free_pages();
        // A thread inside a slow path keeps what it parks, and may not call again.
        return idle_.is_trimmed ? platform::no_timeout : min_pause_ns;
    }
    keep_to_retention(changes);
    return std::max(std::min({period - idle_for, period / looks_in_a_period, max_pause}),
                    min_pause_ns);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
