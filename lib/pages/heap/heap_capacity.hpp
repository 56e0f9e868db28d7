#pragma once

#include "limits/commit_budget.hpp"
#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::pages {

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
    void limit(std::size_t bytes) noexcept;

    /// Returns the bytes up to the limit. Returns 0, and describes the refusal, if these are less
    /// than `needed`, which is not 0. GROWTH.
    std::size_t room_for(std::size_t needed, SlowPath& path) const noexcept;
    /// Returns how many bytes to commit if `needed` are missing, `whole` could be committed in
    /// place, and `room` are left up to the limit. The surplus is at most `max_step`. GROWTH.
    std::size_t with_surplus(std::size_t needed, std::size_t whole, std::size_t room,
                             std::size_t max_step) const noexcept;
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
    void refuse(std::size_t needed, bool system_refused, SlowPath& path) const noexcept;

    /// Counts out bytes that are about to be given back.
    void take_out(std::size_t bytes) noexcept {
        totals_.capacity_bytes.fetch_sub(bytes, std::memory_order_relaxed);
    }
    /// Counts bytes in again that could not be given back.
    void put_back(std::size_t bytes) noexcept {
        totals_.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    /// Refunds bytes that were taken out and have been given back.
    void give_back(std::size_t bytes) noexcept;

    /// Counts `bytes` of memory outside of the heap's spans, which a guarded block is about to
    /// take. Returns false, and counts nothing, if the limit or the budget does not allow it.
    bool charge_outside(std::size_t bytes) noexcept;
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
    void set_prepared(std::size_t bytes) noexcept;
    void count(std::size_t more) noexcept;
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
                   unsigned shard) noexcept;
    /// Counts out pages that are about to be given back.
    void take_out(std::size_t pages) noexcept {
        totals_.reserved_bytes.store(bytes() - pages * page_bytes, std::memory_order_relaxed);
    }
    /// Returns whole granules that were taken out. Their memory is not committed.
    void give_back(PageRun granules) noexcept { space_.take_back(pool_number_, granules); }
    /// Returns everything, including addresses in use, at the end of the heap.
    void give_back_all() noexcept;

private:
    void apply_numa_policy(PageRun run) noexcept;

    AddressSpace& space_;
    const unsigned pool_number_;
    const NumaPolicy numa_;
    statistics::PoolTotals& totals_;
    PageRun low_;
    PageRun ordinary_;
};

}  // namespace tensorpool::pages
