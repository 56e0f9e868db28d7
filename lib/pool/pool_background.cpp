#include <algorithm>

#include "kinds/free_memory.hpp"
#include "limits/commit_budget.hpp"
#include "platform/threads/own_thread.hpp"
#include "pool/pool.hpp"

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

// The exact sum over all threads, which only the trimmer's thread takes.
bool has_much_to_trim(const kinds::PoolParts& pool) noexcept {
    if (pool.options.retain.background == BackgroundTrim::on) return true;
    const std::uint64_t in_use = pool.counters.in_use_bytes();
    const std::uint64_t capacity = pool.heap.capacity().bytes();
    return capacity - std::min(capacity, in_use) > max_free_untrimmed;
}

}  // namespace

// If no call was made during a period, everything that is free now was free for the whole period,
// whether it lies in magazines, depots, the large-block cache or the page heap.
std::uint64_t Pool::look_in_background(Moment moment, pages::Changes& changes) noexcept {
    if (parts_.options.retain.background == BackgroundTrim::off) return platform::no_timeout;
    const std::uint64_t calls = parts_.counters.allocations() + parts_.counters.deallocations();
    if (calls != idle_.calls) idle_ = {.calls = calls, .since_ns = moment.now_ns};
    if (idle_.is_trimmed) return platform::no_timeout;
    const std::uint64_t whole = std::uint64_t{parts_.options.retain.milliseconds} * 1'000'000;
    const std::uint64_t period = moment.is_memory_short ? whole / 10 : whole;
    // A clock that went back ends the period, as in `Retention`.
    const std::uint64_t idle_for =
        moment.now_ns < idle_.since_ns ? period : moment.now_ns - idle_.since_ns;
    // What others take cannot be seen from here, except by looking more often as less is available.
    std::uint64_t max_pause = platform::no_timeout;
    if (const std::size_t bytes = kinds::unoffered_bytes(parts_); bytes >= OfferPace::min_bytes) {
        if (bytes > moment.available_bytes) {
            kinds::offer_free(parts_, changes);
            offer_pace_.begin_again(kinds::unoffered_bytes(parts_));
        }
        if (moment.available_bytes / much_more < bytes) {
            max_pause = std::max(moment.available_bytes / bytes_touched_a_ns, min_pause_ns);
        }
    }
    if (!has_much_to_trim(parts_)) {
        if (idle_for >= period) return max_pause;
        return std::min(std::max(period - idle_for, min_pause_ns), max_pause);
    }
    if (idle_for >= period) {
        idle_.is_trimmed =
            kinds::empty_caches(parts_, blocks::BucketDepot::Magazines::destroy, changes);
        parts_.heap.give_back(SIZE_MAX, changes);
        parts_.buckets.drop_free_pages();
        // A thread inside a slow path keeps what it parks, and may not call again.
        return idle_.is_trimmed ? platform::no_timeout : min_pause_ns;
    }
    kinds::keep_to_retention(parts_, changes);
    return std::max(std::min({period - idle_for, period / looks_in_a_period, max_pause}),
                    min_pause_ns);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
