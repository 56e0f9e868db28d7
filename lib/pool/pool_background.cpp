#include <algorithm>

#include "blocks/thread_registry.hpp"
#include "platform/platform.hpp"
#include "platform/process/own_thread.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

// Less is not worth a thread that was not asked for by name.
constexpr std::uint64_t max_free_without_thread = std::uint64_t{64} << 20;
// A look costs microseconds. So what was free for a period goes a twentieth of it later at most.
constexpr std::uint64_t looks_in_a_period = 20;
// With short periods it goes later, but no more often is looked.
constexpr std::uint64_t min_pause_ns = 10'000'000;

}  // namespace

void Pool::end_slow_path(const pages::Changes& changes) noexcept {
    tell(changes);
    background_trimmer().wake_if_asleep();
    if (options_.retain.background == BackgroundTrim::off) [[likely]]
        return;
    if (background_trimmer().may_start() && wants_background_trimmer())
        background_trimmer().start();
}

bool Pool::wants_background_trimmer() const noexcept {
    if (options_.retain.background == BackgroundTrim::on) return true;
    // Relaxed: figures.
    const std::uint64_t held = record_->totals.held_bytes.load(std::memory_order_relaxed);
    std::uint64_t free = capacity() - std::min(capacity(), held);
    // Large blocks that threads keep count as held.
    if (free <= max_free_without_thread &&
        free + buckets_.large_parking_limit().taken() > max_free_without_thread) {
        free += slots_.statistics().large.parked_bytes;
    }
    return free > max_free_without_thread && !platform::is_single_threaded();
}

// Without any call in between, all that is free now was free all the time, wherever it lies.
std::uint64_t Pool::look_in_background(Moment moment, pages::Changes& changes) noexcept {
    if (options_.retain.background == BackgroundTrim::off) return platform::no_timeout;
    const std::uint64_t calls = slots_.allocations() + slots_.deallocations();
    if (calls != calm_.calls) calm_ = {.calls = calls, .since_ns = moment.now_ns};
    if (calm_.is_trimmed) return platform::no_timeout;
    const std::uint64_t whole = std::uint64_t{options_.retain.milliseconds} * 1'000'000;
    const std::uint64_t period = moment.is_memory_short ? whole / 10 : whole;
    const std::uint64_t calm_for = moment.now_ns - calm_.since_ns;
    if (calm_for >= period) {
        calm_.is_trimmed = empty_caches(blocks::Bucket::Magazines::destroy, changes);
        heap_.give_back(SIZE_MAX, changes);
        buckets_.drop_free_pages();
        // A thread that is amid a slow path keeps what it parks, and may not call again.
        return calm_.is_trimmed ? platform::no_timeout : min_pause_ns;
    }
    keep_to_retention(changes);
    return std::max(std::min(period - calm_for, period / looks_in_a_period), min_pause_ns);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
