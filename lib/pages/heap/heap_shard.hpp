#pragma once

#include "pages/heap/extents.hpp"
#include "pages/heap/fresh_memory.hpp"
#include "pages/heap/heap_capacity.hpp"

namespace tensorpool::pages {

/// What the shards of one pool's page heap share.
struct HeapCommon {
    HeapCommon(AddressSpace& address_space, limits::CommitBudget& process, unsigned pool_number,
               const HeapOptions& heap_options, statistics::PoolTotals& pool_totals) noexcept
        : space(address_space),
          number(pool_number),
          options(heap_options),
          totals(pool_totals),
          capacity(growth, process, options, totals),
          loans(space, number, options, totals),
          kept(process, options, totals),
          fresh(space, options) {}

    AddressSpace& space;
    const unsigned number;  // of the pool
    const HeapOptions options;
    statistics::PoolTotals& totals;

    /// Held while memory is committed or moved, and while addresses are borrowed or returned. It
    /// comes before the lock of any shard.
    std::mutex growth;
    HeapCapacity capacity;
    HeapLoans loans;
    KeptMemory kept;
    FreshMemory fresh;
    /// The threads that touch free memory. If there are any, no addresses are returned. Guarded by
    /// `growth`.
    unsigned touching = 0;
};

/// While an object of this class exists, free memory may be touched without a lock: the heap keeps
/// its addresses.
class Touching {
public:
    explicit Touching(HeapCommon& common) noexcept : common_(common) {
        const std::lock_guard guard(common.growth);
        ++common.touching;
    }
    ~Touching() {
        const std::lock_guard guard(common_.growth);
        --common_.touching;
    }
    Touching(const Touching&) = delete;
    Touching& operator=(const Touching&) = delete;

private:
    HeapCommon& common_;
};

/// The pages of one pool that one shard borrowed. Commits, divides and gives back. Each function
/// takes the shard's lock itself. Thread-safe; where a comment says GROWTH, the caller holds
/// `HeapCommon::growth`.
class HeapShard {
public:
    HeapShard(HeapCommon& common, unsigned number) noexcept;

    /// Cuts a span out of free memory. Returns nullptr if no extent fits, or, with a refusal, if
    /// there is no memory for a record.
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        Span* const extent = extents_.find_hot(request.pages, request.alignment);
        return extent == nullptr ? nullptr : take_hot(*extent, request, path);
    }
    /// Like `take_free`, but grows the shard if no extent fits. If that is refused, `path.refusal`
    /// and `path.shortage` say why. GROWTH.
    Span* take(const PageRequest& request, SlowPath& path) noexcept;
    /// Makes a span in use a hot extent.
    void free(Span& span, Zeroed zeroed) noexcept;
    /// Returns whether `take_free` would find memory for so many pages.
    bool has_free(PageCount pages) noexcept {
        const std::lock_guard guard(mutex_);
        return extents_.find_hot(pages, 1) != nullptr;
    }
    /// Adds to the refusal what is free here.
    void report_free(Refusal& refusal) noexcept;

    /// Commits so many adjacent pages, without a surplus. GROWTH.
    bool commit_pages(PageCount pages, SlowPath& path) noexcept;
    /// Touches all free memory. The heap keeps its addresses: see `Touching`.
    void touch_free() noexcept;

    enum class MayCommit : bool { no, yes };
    /// See PageHeap::extend. GROWTH if the call may commit memory.
    bool extend(Span& span, PageCount pages, MayCommit may_commit, SlowPath& path) noexcept;
    /// See PageHeap::shorten.
    bool shorten(Span& span, PageCount pages) noexcept {
        const std::lock_guard guard(mutex_);
        const bool is_done = extents_.shorten(span, pages);
        count_free();
        return is_done;
    }
    /// See PageHeap::move and `take_left`. The first: GROWTH.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    void take_left(Span& left) noexcept {
        const std::lock_guard guard(mutex_);
        extents_.add(left, PageKind::extent_cold);
    }

    /// Takes hot extents of up to `bytes` bytes out of the heap and reduces the capacity. Returns
    /// their bytes. The caller passes the extents to `drop`.
    std::size_t collect(SpanList& leaving, std::size_t bytes) noexcept;
    /// Drops the pages of collected extents, which become cold. Returns the bytes given back. If
    /// the system refuses, the extent stays hot.
    std::size_t drop(SpanList& leaving, Changes& changes) noexcept;
    /// Lets the system take the pages of all hot extents, which stay in the heap. Returns their
    /// bytes. Holds the lock until then, so that no thread gets pages that are being offered.
    std::size_t offer_free() noexcept;

    /// Takes the whole granules of cold extents out of the heap, for `return_addresses`. GROWTH.
    void collect_cold(SpanList& leaving) noexcept {
        const std::lock_guard guard(mutex_);
        take_cold(leaving);
    }
    void return_addresses(SpanList& leaving) noexcept;

    bool is_marked() const noexcept { return number_ == AddressSpace::marked_shard; }

    /// While the lock is held, look-ups of addresses that were lent to this shard are safe.
    void lock() noexcept {
        mutex_.lock();
        extents_.records().lock();
    }
    void unlock() noexcept {
        extents_.records().unlock();
        mutex_.unlock();
    }

private:
    enum class Surplus : bool { no, yes };

    // REQUIRES, for all that follow: the lock is held.
    Span* take_hot(Span& extent, const PageRequest& request, SlowPath& path) noexcept;
    void count_free() noexcept {
        const std::size_t free_bytes = extents_.hot().total_pages() * page_bytes;
        const std::size_t untouched_bytes = extents_.untouched_pages() * page_bytes;
        common_.kept.count_free(
            free_bytes - std::exchange(counted_free_, free_bytes),
            untouched_bytes - std::exchange(counted_untouched_, untouched_bytes));
    }

    // A refusal sets `shortage`.
    bool grow(const PageRequest& request, SlowPath& path) noexcept;
    bool commit_at(const GrowthPosition& position, Surplus surplus, SlowPath& path) noexcept;
    bool commit_alone(Span& cold, PageRun run) noexcept;
    std::size_t max_step() const noexcept;
    Span* hot_behind(const Span& span, PageCount pages, MayCommit may_commit,
                     SlowPath& path) noexcept;
    bool borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept;
    void take_cold(SpanList& leaving) noexcept;

    HeapCommon& common_;
    AddressSpace& space_;
    const unsigned number_;  // of the shard
    std::mutex mutex_;
    // Guarded by mutex_:
    Extents extents_;
    // What this shard contributes to `free_bytes` and `untouched_bytes`.
    std::size_t counted_free_ = 0;
    std::size_t counted_untouched_ = 0;
};

}  // namespace tensorpool::pages
