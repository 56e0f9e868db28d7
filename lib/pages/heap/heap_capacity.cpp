#include "pages/heap/heap_capacity.hpp"

#include "platform/memory/numa_policy.hpp"

namespace tensorpool::pages {

// A growth ends at a multiple of this if the surplus allows, so that huge pages are complete.
constexpr std::size_t commit_unit = 16 * page_bytes;

std::size_t HeapCapacity::room_for(std::size_t needed, SlowPath& path) const noexcept {
    path.budget.clear();
    const std::size_t limit = limit_or_max();
    const std::size_t now = bytes();  // once: other shards may lower it
    const std::size_t room = limit - std::min(limit, now);
    if (needed <= room) return room;
    path.refusal = {"max_capacity", limit};
    path.refusal.needed_limit = now + needed;
    path.refusal.missing = now + needed - limit;
    path.shortage = needed - room;
    return 0;
}

std::size_t HeapCapacity::with_surplus(std::size_t needed, std::size_t whole, std::size_t room,
                                       std::size_t max_step) const noexcept {
    const auto by_factor = static_cast<std::size_t>(static_cast<double>(bytes()) * policy_.factor);
    const std::size_t step = std::min(std::max(policy_.step, by_factor), max_step);
    const std::size_t most = std::min(std::max(step, needed), whole);
    const std::size_t ends_well =
        std::min({base::align_up(most, commit_unit), whole, base::align_down(room, page_bytes)});
    return std::max(ends_well, needed);
}

void HeapCapacity::give_back(std::size_t bytes) noexcept {
    account_.give_back(bytes);
    totals_.give_backs.fetch_add(1, std::memory_order_relaxed);
    totals_.given_back_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

bool HeapCapacity::charge_outside(std::size_t bytes) noexcept {
    const std::lock_guard guard(growth_);
    const std::size_t limit = limit_or_max();
    if (bytes > limit - std::min(limit, this->bytes())) return false;
    limits::BudgetRequest request = limits::BudgetRequest::beyond_soft();
    if (account_.take(bytes, bytes, 1, page_bytes, request) == 0) return false;
    count(bytes);
    return true;
}

// Other shards reduce the capacity without the lock of growth.
void HeapCapacity::count(std::size_t more) noexcept {
    const std::size_t before = totals_.capacity_bytes.fetch_add(more, std::memory_order_relaxed);
    base::raise_to(totals_.peak_capacity_bytes, before + more);
}

PageRun HeapLoans::borrow(PageCount needed, PageCount wanted, PageCount alignment,
                          unsigned shard) noexcept {
    const PageRun run = space_.lend(pool_number_, needed, wanted, alignment, shard);
    if (run.count == 0) return run;
    apply_numa_policy(run);
    PageRun& all = shard == AddressSpace::marked_shard ? low_ : ordinary_;
    const PageNumber end = std::max(all.first + all.count, run.first + run.count);
    all.first = all.count == 0 ? run.first : std::min(all.first, run.first);
    all.count = end - all.first;
    detail::add(totals_.reserved_bytes, run.count * page_bytes);
    base::raise_to(totals_.peak_reserved_bytes, bytes());
    return run;
}

void HeapLoans::apply_numa_policy(PageRun run) noexcept {
    if (numa_.placement == NumaPolicy::Placement::system) return;
    const bool prefers = numa_.placement == NumaPolicy::Placement::prefer;
    platform::set_numa_policy(
        space_.address_of(run.first), run.count * page_bytes,
        prefers ? platform::NumaPolicy::prefer : platform::NumaPolicy::interleave,
        prefers ? numa_.node : 0);
}

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
