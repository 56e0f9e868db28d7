#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <tensorpool/pool_options.hpp>

#include "base/refusal.hpp"
#include "limits/commit_account.hpp"
#include "pages/address_space.hpp"
#include "pages/heap/extent_bins.hpp"
#include "pages/heap/folio_choice.hpp"
#include "pages/heap/retention.hpp"
#include "pages/record_pool.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::pages {

struct PageRequest {
    PageCount pages;
    PageCount alignment = 1;  // in pages, a power of two
    PageKind kind = PageKind::large_in_use;
    bool huge = false;     // the caller will touch all of it; for buckets, also what follows
    bool may_grow = true;  // if false, only free memory is used
};

/// The changes that a call made to the pool's capacity, in bytes, for the owner's callback.
struct Changes {
    std::size_t grown = 0;
    std::size_t given_back = 0;
    PageRun fresh = {};  // the last run that was committed and is not touched yet
};

using base::Refusal;

/// The context of one call through the slow paths of an allocation, from the pool down to the
/// pages. Each layer adds to it, and the pool reports it at the end.
struct SlowPath : Changes {
    Refusal refusal = {};  // the reason if there is no block
    bool may_grow = true;  // if false, only free memory is used; its lack is not a refusal
    /// The bytes that have to be given back before the same growth can succeed; 0 if giving back
    /// does not help.
    std::size_t shortage = 0;
    /// The last granule that requested a huge page and is not touched yet.
    PageRun untried = {};
    /// How the request meets the limits of budgets.
    limits::BudgetRequest budget = {};
};

/// The refusal for lack of memory for records.
Refusal no_records() noexcept;

struct HeapOptions {
    std::size_t max_capacity = 0;  // 0: none
    GrowthPolicy growth = {};
    RetentionPolicy retain = {};
    HugePages huge_pages = HugePages::buckets;
    NumaPolicy numa = {};
    /// The budget to which the heap charges what it commits, or nullptr.
    limits::BudgetNode* budget = nullptr;
    /// Whether the memory of former span records stays readable until the heap is destroyed.
    bool keep_records = false;
    std::uint64_t (*clock_ns)() noexcept = nullptr;
    /// Chooses the sizes of pages that growing buckets and `prefault` request with
    /// `HugePages::buckets`. If it is nullptr, buckets request huge pages and `prefault` none.
    FolioChoice* folios = nullptr;
    std::uint64_t (*thread_time_ns)() noexcept = platform::thread_time_ns;
};

/// What the shards of one pool's page heap share.
struct HeapCommon {
    AddressSpace& space;
    limits::CommitAccount account;
    const unsigned number;  // of the pool
    const HeapOptions options;
    statistics::PoolTotals& totals;
    Retention retention = {};
    /// Free bytes that the system may take. At most what is free, so that it falls as free memory
    /// is used; what was offered may be used last.
    std::atomic<std::uint64_t> offered = 0;
    /// Whether there is a second shard. Set under the lock of the first one.
    std::atomic<bool> is_divided = false;

    /// Held while memory is committed or moved, and while addresses are borrowed or returned. It
    /// comes before the lock of any shard.
    std::mutex growth = {};
    // Guarded by `growth`:
    // What `reserve` prepared: retention does not reduce the capacity below it.
    std::size_t floor = 0;
    std::size_t max_capacity = options.max_capacity;  // 0: no limit
    PageRun loans = {};      // contains everything that was ever lent to this heap, except for
    PageRun low_loans = {};  // this, which contains what was lent to the marked shard
    unsigned touching = 0;   // threads that touch free memory

    /// Sets and publishes `floor`. GROWTH.
    void set_floor(std::size_t bytes) noexcept {
        floor = bytes;
        totals.prepared_bytes.store(bytes, std::memory_order_relaxed);
    }
    std::size_t capacity() const noexcept {
        return totals.capacity_bytes.load(std::memory_order_relaxed);
    }
    std::size_t lent_bytes() const noexcept {
        return totals.reserved_bytes.load(std::memory_order_relaxed);
    }
    std::size_t free_bytes() const noexcept {
        return totals.free_bytes.load(std::memory_order_relaxed);
    }
    /// Adds to the free bytes, and to those of them that were never touched; a negative number is
    /// added modulo 2^64. The caller holds the lock of a shard.
    void count_free(std::size_t more, std::size_t more_untouched) noexcept {
        if (is_divided.load(std::memory_order_relaxed)) {
            totals.free_bytes.fetch_add(more, std::memory_order_relaxed);
            totals.untouched_bytes.fetch_add(more_untouched, std::memory_order_relaxed);
        } else {
            detail::add(totals.free_bytes, more);
            detail::add(totals.untouched_bytes, more_untouched);
        }
        retention.saw_free(free_bytes());
        const std::size_t free = free_bytes();
        if (offered.load(std::memory_order_relaxed) > free) [[unlikely]]
            base::lower_to(offered, free);
    }
};

/// The pages of one pool that one shard borrowed: spans in use, hot extents (free and committed)
/// and cold extents (free and not committed). No two hot extents of a shard are adjacent, nor are
/// two cold ones. Each function takes the shard's lock itself. Thread-safe; where a comment says
/// GROWTH, the caller holds `HeapCommon::growth`.
class HeapShard {
public:
    HeapShard(HeapCommon& common, unsigned number) noexcept;
    HeapShard(const HeapShard&) = delete;
    HeapShard& operator=(const HeapShard&) = delete;

    // Taking and freeing (heap_shard.cpp) ----------------------------------------------------

    /// Cuts a span out of free memory. Returns nullptr if no extent fits, or, with a refusal, if
    /// there is no memory for a record.
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept;
    /// Like `take_free`, but grows the shard if no extent fits. If that is refused, `path.refusal`
    /// and `path.shortage` say why. GROWTH.
    Span* take(const PageRequest& request, SlowPath& path) noexcept;
    /// Makes a span in use a hot extent.
    void free(Span& span, Zeroed zeroed) noexcept;
    /// Returns whether `take_free` would find memory for so many pages.
    bool has_free(PageCount pages) noexcept;
    /// Adds to the refusal what is free here.
    void report_free(Refusal& refusal) noexcept;

    // Growing (page_heap_growth.cpp) ---------------------------------------------------------

    /// Commits so many adjacent pages, without a surplus. GROWTH.
    bool commit_pages(PageCount pages, SlowPath& path) noexcept;
    /// Touches all free memory. The heap keeps its addresses: `HeapCommon::touching` is not 0.
    void touch_free() noexcept;

    // Giving back (page_heap_giving.cpp) -----------------------------------------------------

    /// Takes hot extents of up to `bytes` bytes out of the heap and reduces the capacity. Returns
    /// their bytes. The caller passes the extents to `drop`.
    std::size_t collect(SpanList& leaving, std::size_t bytes) noexcept;
    /// Drops the pages of collected extents, which become cold. Returns the bytes given back. If
    /// the system refuses, the extent stays hot.
    std::size_t drop(SpanList& leaving, Changes& changes) noexcept;

    /// Lets the system take the pages of all hot extents, which stay in the heap. Returns their
    /// bytes. Holds the lock until then, so that no thread gets pages that are being offered.
    std::size_t offer_free() noexcept;

    // Addresses (page_heap_lending.cpp) ------------------------------------------------------

    /// Takes the whole granules of cold extents out of the heap, for `return_addresses`. GROWTH.
    void collect_cold(SpanList& leaving) noexcept;
    void return_addresses(SpanList& leaving) noexcept;

    // Blocks that grow (page_heap_moving.cpp) ------------------------------------------------

    enum class MayCommit : bool { no, yes };
    /// See PageHeap::extend. GROWTH if the call may commit memory.
    bool extend(Span& span, PageCount pages, MayCommit may_commit, SlowPath& path) noexcept;
    /// See PageHeap::move and `take_left`. The first: GROWTH.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    void take_left(Span& left) noexcept;

    /// While the lock is held, look-ups of addresses that were lent to this shard are safe.
    void lock() noexcept;
    void unlock() noexcept;

private:
    // A position at which to grow: these pages of a cold extent.
    struct Position {
        Span* cold = nullptr;
        PageNumber first = 0;
        PageCount pages = 0;
    };
    enum class Surplus : bool { no, yes };

    // REQUIRES, for all that follow: the lock is held.
    // heap_shard.cpp
    Span* find_hot(const PageRequest& request) noexcept;
    Span* take_hot(Span& extent, const PageRequest& request, SlowPath& path) noexcept;
    Span* cut(Span& extent, const PageRequest& request) noexcept;
    void add_extent(Span& extent, PageKind kind) noexcept;
    void remove_extent(Span& extent) noexcept;
    Span* neighbour(PageNumber page, PageKind kind) noexcept;
    void mark_in_use(Span& span, PageKind kind) noexcept;
    void clear_marks(Span& span) noexcept;
    void count_free() noexcept;

    // page_heap_growth.cpp. A refusal sets `shortage`.
    bool grow(const PageRequest& request, SlowPath& path) noexcept;
    Position cheapest_position(const PageRequest& request) noexcept;
    Position position_beside(Span& cold, const PageRequest& request) noexcept;
    bool commit_at(Position position, Surplus surplus, SlowPath& path) noexcept;
    std::size_t wanted_bytes(Position position, Surplus surplus, SlowPath& path) const noexcept;
    bool commit_run(Span& cold, PageRun run) noexcept;
    bool commit_alone(Span& cold, PageRun run) noexcept;
    bool isolate(Span& cold, PageRun run) noexcept;
    void count_growth(std::size_t bytes) noexcept;

    // page_heap_fresh.cpp: requests for larger pages.
    void request_huge_pages(Span& extent) noexcept;
    void request_for_span(Span& extent, const PageRequest& request, SlowPath& path) noexcept;

    // page_heap_lending.cpp
    bool borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept;
    void note_loan(PageRun run) noexcept;
    void take_cold(SpanList& leaving) noexcept;
    static PageRun granules_in(const Span& extent) noexcept;

    // page_heap_moving.cpp
    Span* hot_behind(const Span& span, PageCount pages, MayCommit may_commit,
                     SlowPath& path) noexcept;
    void join_front(Span& span, Span& extent, PageCount pages) noexcept;
    Position target_of_move(PageRun from, PageCount pages) noexcept;

    // page_heap_giving.cpp
    Span* extent_to_give(std::size_t pages) noexcept;
    Span* keep_front(Span& extent, PageCount pages) noexcept;

    bool is_marked() const noexcept { return number_ == AddressSpace::marked_shard; }

    HeapCommon& common_;
    AddressSpace& space_;
    const unsigned number_;  // of the shard
    RecordPool<Span> spans_;
    std::mutex mutex_;
    // Guarded by mutex_:
    ExtentBins hot_;
    ExtentBins cold_;
    PageCount untouched_pages_ = 0;  // of hot extents
    // What this shard contributes to `free_bytes` and `untouched_bytes`.
    std::size_t counted_free_ = 0;
    std::size_t counted_untouched_ = 0;
};

}  // namespace tensorpool::pages
