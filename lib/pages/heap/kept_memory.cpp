#include "pages/heap/kept_memory.hpp"

namespace tensorpool::pages {

KeptMemory::KeptMemory(limits::CommitBudget& process, const HeapOptions& options,
                       statistics::PoolTotals& totals) noexcept
    : process_(process),
      totals_(totals),
      max_bytes_(options.retain.bytes),
      usual_period_ns_(std::uint64_t{options.retain.milliseconds} * 1'000'000) {
    retention_.begin(options.clock_ns(), usual_period_ns_, 0);
}

void KeptMemory::count_free(std::size_t more, std::size_t more_untouched) noexcept {
    if (is_divided_.load(std::memory_order_relaxed)) {
        totals_.free_bytes.fetch_add(more, std::memory_order_relaxed);
        totals_.untouched_bytes.fetch_add(more_untouched, std::memory_order_relaxed);
    } else {
        detail::add(totals_.free_bytes, more);
        detail::add(totals_.untouched_bytes, more_untouched);
    }
    const std::size_t free = free_bytes();
    retention_.saw_free(free);
    if (offered_.load(std::memory_order_relaxed) > free) [[unlikely]]
        base::lower_to(offered_, free);
}

// A shard that gets free memory while others are offered has it counted as offered, until it is
// used.
void KeptMemory::note_offered(std::size_t bytes) noexcept {
    offered_.store(std::min(bytes, free_bytes()), std::memory_order_relaxed);
}

std::size_t KeptMemory::unoffered_bytes() const noexcept {
    const std::size_t kept =
        free_bytes() + totals_.large_cached_bytes.load(std::memory_order_relaxed);
    const std::size_t without = offered_.load(std::memory_order_relaxed) +
                                totals_.untouched_bytes.load(std::memory_order_relaxed);
    return kept - std::min(kept, without);
}

std::uint64_t KeptMemory::period_ns() const noexcept {
    return usual_period_ns_ != 0 && process_.short_of_memory() ? usual_period_ns_ / 10
                                                               : usual_period_ns_;
}

std::size_t KeptMemory::begin_period(std::uint64_t now_ns) noexcept {
    const std::size_t unneeded = retention_.unneeded();
    const std::size_t free = free_bytes();
    retention_.begin(now_ns, period_ns(), free - std::min(free, unneeded));
    // What another thread took in the meantime was compared with the previous minimum.
    retention_.saw_free(free_bytes());
    return unneeded;
}

std::size_t KeptMemory::bytes() const noexcept {
    return free_bytes() + totals_.large_cached_bytes.load(std::memory_order_relaxed) +
           elsewhere_.load(std::memory_order_relaxed);
}

}  // namespace tensorpool::pages
