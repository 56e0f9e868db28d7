#pragma once

#include "limits/commit_budget.hpp"
#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"
#include "platform/memory/numa_policy.hpp"

namespace tensorpool::pages {

// A growth ends at a multiple of this if the surplus allows, so that huge pages are complete.
inline constexpr std::size_t commit_unit = 16 * page_bytes;

/// What one page heap has committed, over all shards, and what limits it: `max_capacity`, the
/// budget, and the memory of the system. Thread-safe; where a comment says GROWTH, the caller holds
/// the heap's lock of growth, which the constructor gets.
class HeapCapacity {
public:
    HeapCapacity(std::mutex& growth, limits::CommitBudget& process, const HeapOptions& options,
                 statistics::PoolTotals& totals) noexcept
        : growth_(growth),
          account_(process, options.budget),
          policy_(options.growth),
          totals_(totals),
          max_(options.max_capacity) {}
    ~HeapCapacity() { account_.give_back(bytes()); }

    std::size_t bytes() const noexcept {
        return totals_.capacity_bytes.load(std::memory_order_relaxed);
    }
    /// The limit; 0 if there is none. GROWTH.
    std::size_t max() const noexcept { return max_; }
    /// Sets the limit; 0 means none. Memory above it that was prepared may be given back. GROWTH.
    void limit(std::size_t bytes) noexcept {
        max_ = bytes;
        if (bytes != 0) set_prepared(std::min(prepared_, bytes));
    }

    /// Returns the bytes up to the limit. Returns 0, and describes the refusal, if these are less
    /// than `needed`, which is not 0. GROWTH.
    std::size_t room_for(std::size_t needed, SlowPath& path) const noexcept {
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
    /// Returns how many bytes to commit if `needed` are missing, `whole` could be committed in
    /// place, and `room` are left up to the limit. The surplus is at most `max_step`. GROWTH.
    std::size_t with_surplus(std::size_t needed, std::size_t whole, std::size_t room,
                             std::size_t max_step) const noexcept {
        const auto by_factor =
            static_cast<std::size_t>(static_cast<double>(bytes()) * policy_.factor);
        const std::size_t step = std::min(std::max(policy_.step, by_factor), max_step);
        const std::size_t most = std::min(std::max(step, needed), whole);
        const std::size_t ends_well = std::min(
            {base::align_up(most, commit_unit), whole, base::align_down(room, page_bytes)});
        return std::max(ends_well, needed);
    }
    /// Charges `needed` bytes, or more up to `wanted`, and calls `commit(bytes)`, which returns
    /// whether it committed them. Returns the bytes by which the capacity grew; 0 if that was
    /// refused. GROWTH.
    template <class Commit>
    std::size_t grow(std::size_t needed, std::size_t wanted, SlowPath& path,
                     Commit commit) noexcept {
        const std::size_t grown = account_.take_and_get(needed, wanted, policy_.fraction,
                                                        page_bytes, path.budget, commit);
        if (grown == 0) return 0;
        count(grown);
        detail::add(totals_.growths, 1);
        detail::add(totals_.grown_bytes, grown);
        path.grown += grown;
        return grown;
    }
    /// Describes why `grow` was refused. `system_refused`: `commit` was called.
    void refuse(std::size_t needed, bool system_refused, SlowPath& path) const noexcept {
        path.refusal = account_.refuse(needed, system_refused, path.budget);
        path.shortage = needed;
    }

    void take_out(std::size_t bytes) noexcept {
        totals_.capacity_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
    void put_back(std::size_t bytes) noexcept {
        totals_.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    /// Refunds bytes that were taken out and have been given back.
    void give_back(std::size_t bytes) noexcept {
        account_.give_back(bytes);
        totals_.give_backs.fetch_add(1, std::memory_order_relaxed);
        totals_.given_back_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }

    /// Counts `bytes` of memory outside of the heap's spans, which a guarded block is about to
    /// take. Returns false, and counts nothing, if the limit or the budget does not allow it.
    bool charge_outside(std::size_t bytes) noexcept {
        const std::lock_guard guard(growth_);
        const std::size_t limit = limit_or_max();
        if (bytes > limit - std::min(limit, this->bytes())) return false;
        limits::BudgetRequest request = limits::BudgetRequest::beyond_soft();
        if (account_.take(bytes, bytes, 1, page_bytes, request) == 0) return false;
        count(bytes);
        return true;
    }
    void refund_outside(std::size_t bytes) noexcept {
        account_.give_back(bytes);
        take_out(bytes);
    }

    // What `reserve` prepared: retention does not reduce the capacity below it. GROWTH, all three.
    void prepare(std::size_t bytes) noexcept { set_prepared(std::max(prepared_, bytes)); }
    void forget_prepared() noexcept { set_prepared(0); }
    std::size_t above_prepared() const noexcept {
        const std::size_t now = bytes();
        return now - std::min(now, prepared_);
    }

private:
    void set_prepared(std::size_t bytes) noexcept {
        prepared_ = bytes;
        totals_.prepared_bytes.store(bytes, std::memory_order_relaxed);
    }
    // Other shards reduce the capacity without the lock of growth.
    void count(std::size_t more) noexcept {
        const std::size_t before =
            totals_.capacity_bytes.fetch_add(more, std::memory_order_relaxed);
        base::raise_to(totals_.peak_capacity_bytes, before + more);
    }
    std::size_t limit_or_max() const noexcept { return max_ == 0 ? SIZE_MAX : max_; }

    std::mutex& growth_;
    limits::CommitAccount account_;
    const GrowthPolicy policy_;
    statistics::PoolTotals& totals_;
    // Guarded by `growth_`:
    std::size_t max_;  // 0: no limit
    std::size_t prepared_ = 0;
};

/// The addresses that one page heap borrowed from the address space, in whole granules. Guarded by
/// the heap's lock of growth, except for `bytes` and `give_back`.
class HeapLoans {
public:
    HeapLoans(AddressSpace& space, unsigned pool_number, const HeapOptions& options,
              statistics::PoolTotals& totals) noexcept
        : space_(space), pool_number_(pool_number), numa_(options.numa), totals_(totals) {}

    std::size_t bytes() const noexcept {
        return totals_.reserved_bytes.load(std::memory_order_relaxed);
    }
    /// Contains everything that was ever lent to the marked shard.
    PageRun low() const noexcept { return low_; }
    /// Contains everything that was ever lent to the other shards.
    PageRun ordinary() const noexcept { return ordinary_; }

    /// Borrows `wanted` pages, or `needed` if there is no longer run, for this shard of the heap,
    /// and applies the NUMA policy to them. Returns an empty run on failure.
    PageRun borrow(PageCount needed, PageCount wanted, PageCount alignment,
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
    /// Counts out pages that are about to be given back.
    void take_out(std::size_t pages) noexcept {
        totals_.reserved_bytes.store(bytes() - pages * page_bytes, std::memory_order_relaxed);
    }
    /// Returns whole granules that were taken out. Their memory is not committed.
    void give_back(PageRun granules) noexcept { space_.take_back(pool_number_, granules); }
    /// Returns everything, including addresses in use, at the end of the heap.
    void give_back_all() noexcept {
        give_back(ordinary_);
        give_back(low_);
    }

private:
    void apply_numa_policy(PageRun run) noexcept {
        if (numa_.placement == NumaPolicy::Placement::system) return;
        const bool prefers = numa_.placement == NumaPolicy::Placement::prefer;
        platform::set_numa_policy(
            space_.address_of(run.first), run.count * page_bytes,
            prefers ? platform::NumaPolicy::prefer : platform::NumaPolicy::interleave,
            prefers ? numa_.node : 0);
    }

    AddressSpace& space_;
    const unsigned pool_number_;
    const NumaPolicy numa_;
    statistics::PoolTotals& totals_;
    PageRun low_;
    PageRun ordinary_;
};

/// Decides how much free memory is given back. The minimum of the free bytes over a period is the
/// amount that was not needed during all of it, however extents were split and joined. A clock that
/// goes back by a period ends it: otherwise free memory would be kept until the clock has caught
/// up. `begin` is called by one thread at a time; all else is thread-safe.
class Retention {
public:
    /// Begins a period. A period of 0 ns has ended at every later call of `ended`.
    void begin(std::uint64_t now_ns, std::uint64_t period_ns, std::size_t free_bytes) noexcept {
        min_free_.store(free_bytes, std::memory_order_relaxed);
        begun_ns_.store(now_ns, std::memory_order_relaxed);
        period_ns_.store(period_ns, std::memory_order_relaxed);
        period_.fetch_add(1, std::memory_order_relaxed);
    }
    bool ended(std::uint64_t now_ns) const noexcept {
        // Another thread may just have begun a period at a later time than this thread's.
        const std::uint64_t begun_ns = begun_ns_.load(std::memory_order_relaxed);
        const std::uint64_t away_ns = now_ns < begun_ns ? begun_ns - now_ns : now_ns - begun_ns;
        return away_ns >= period_ns_.load(std::memory_order_relaxed);
    }
    /// If two threads call it at once, the lower of their values may be lost. Then more is given
    /// back than was free during the whole period, and has to be committed again.
    void saw_free(std::size_t free_bytes) noexcept {
        if (free_bytes >= unneeded()) return;
        min_free_.store(free_bytes, std::memory_order_relaxed);
    }
    /// The bytes that were free during the whole period.
    std::size_t unneeded() const noexcept { return min_free_.load(std::memory_order_relaxed); }
    std::uint32_t period() const noexcept { return period_.load(std::memory_order_relaxed); }

private:
    // Relaxed, all four: they are heuristics and order nothing.
    std::atomic<std::uint64_t> begun_ns_ = 0;
    std::atomic<std::uint64_t> period_ns_ = 0;
    std::atomic<std::size_t> min_free_ = 0;
    std::atomic<std::uint32_t> period_ = 0;
};

/// The free memory that one pool keeps committed, in bytes: free extents of its page heap, the
/// cache of large blocks, and what depots and threads' caches keep. Says how much of it is more
/// than the pool's retention allows. Thread-safe.
class KeptMemory {
public:
    KeptMemory(limits::CommitBudget& process, const HeapOptions& options,
               statistics::PoolTotals& totals) noexcept
        : process_(process),
          totals_(totals),
          max_bytes_(options.retain.bytes),
          usual_period_ns_(std::uint64_t{options.retain.milliseconds} * 1'000'000) {
        retention_.begin(options.clock_ns(), usual_period_ns_, 0);
    }

    std::size_t free_bytes() const noexcept {
        return totals_.free_bytes.load(std::memory_order_relaxed);
    }
    /// Returns whether the amount is unlimited, so that what is kept elsewhere is not counted.
    bool is_unlimited() const noexcept { return max_bytes_ == SIZE_MAX; }
    /// Returns whether `more` bytes may be kept in depots, threads' caches or the large-block
    /// cache.
    bool may_keep(std::size_t more) const noexcept {
        return is_unlimited() || bytes() + more <= max_bytes_;
    }
    std::size_t excess() const noexcept {
        const std::size_t now = bytes();
        return now - std::min(now, max_bytes_);
    }
    /// Counts bytes of free blocks that enter (or, if negative, leave) depots or threads' caches.
    void note_elsewhere(std::ptrdiff_t bytes) noexcept {
        if (is_unlimited()) [[likely]]
            return;
        elsewhere_.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
    }

    /// Adds to the free bytes of the page heap, and to those of them that were never touched; a
    /// negative number is added modulo 2^64. The caller holds the lock of a shard.
    void count_free(std::size_t more, std::size_t more_untouched) noexcept {
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
    /// From now on, several shards may count at once. Called under the lock of the first one.
    void divide() noexcept { is_divided_.store(true, std::memory_order_relaxed); }

    /// Notes that the system may take so many of the free bytes. A shard that gets free memory
    /// while others are offered has it counted as offered, until it is used.
    void note_offered(std::size_t bytes) noexcept {
        offered_.store(std::min(bytes, free_bytes()), std::memory_order_relaxed);
    }
    /// Returns the free bytes that take memory and that the system may not take. What threads keep
    /// does not count.
    std::size_t unoffered_bytes() const noexcept {
        const std::size_t kept =
            free_bytes() + totals_.large_cached_bytes.load(std::memory_order_relaxed);
        const std::size_t without = offered_.load(std::memory_order_relaxed) +
                                    totals_.untouched_bytes.load(std::memory_order_relaxed);
        return kept - std::min(kept, without);
    }

    std::uint32_t period() const noexcept { return retention_.period(); }
    /// The length of a period that begins now.
    std::uint64_t period_ns() const noexcept {
        return usual_period_ns_ != 0 && process_.short_of_memory() ? usual_period_ns_ / 10
                                                                   : usual_period_ns_;
    }
    bool has_period_ended(std::uint64_t now_ns) const noexcept { return retention_.ended(now_ns); }
    /// Begins the next period. Returns the bytes that were free during all of the last one. Called
    /// by one thread at a time.
    std::size_t begin_period(std::uint64_t now_ns) noexcept {
        const std::size_t unneeded = retention_.unneeded();
        const std::size_t free = free_bytes();
        retention_.begin(now_ns, period_ns(), free - std::min(free, unneeded));
        // What another thread took in the meantime was compared with the previous minimum.
        retention_.saw_free(free_bytes());
        return unneeded;
    }

private:
    std::size_t bytes() const noexcept {
        return free_bytes() + totals_.large_cached_bytes.load(std::memory_order_relaxed) +
               elsewhere_.load(std::memory_order_relaxed);
    }

    limits::CommitBudget& process_;
    statistics::PoolTotals& totals_;
    const std::size_t max_bytes_;
    const std::uint64_t usual_period_ns_;
    Retention retention_;
    // Relaxed, all three: counts and a hint that order nothing.
    std::atomic<std::size_t> elsewhere_ = 0;
    // At most what is free, so that it falls as free memory is used; what was offered may be used
    // last.
    std::atomic<std::uint64_t> offered_ = 0;
    std::atomic<bool> is_divided_ = false;
};

}  // namespace tensorpool::pages
