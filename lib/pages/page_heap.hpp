#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include <tensorpool/pool_options.hpp>

#include "base/refusal.hpp"
#include "pages/address_space.hpp"
#include "pages/extent_bins.hpp"
#include "pages/folio_choice.hpp"
#include "pages/record_pool.hpp"
#include "pages/retention.hpp"
#include "statistics/commit_budget.hpp"
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
};

/// The refusal for lack of memory for records.
Refusal no_records() noexcept;

struct HeapOptions {
    std::size_t max_capacity = 0;  // 0: none
    GrowthPolicy growth = {};
    RetentionPolicy retain = {};
    HugePages huge_pages = HugePages::buckets;
    NumaPolicy numa = {};
    /// Whether the memory of former span records stays readable until the heap is destroyed.
    bool keep_records = false;
    std::uint64_t (*clock_ns)() noexcept = nullptr;
    /// Chooses the sizes of pages that growing buckets and `prefault` request with
    /// `HugePages::buckets`. If it is nullptr, buckets request huge pages and `prefault` none.
    FolioChoice* folios = nullptr;
    std::uint64_t (*thread_time_ns)() noexcept = platform::thread_time_ns;
};

/// One pool's pages. The runs that the address space lent to the pool are divided into spans in
/// use, hot extents (free and committed) and cold extents (free and not committed). No two hot
/// extents are adjacent, nor are two cold ones. The capacity is all that is committed. Thread-safe.
/// System calls that drop pages are made without the lock, except when pages are moved and when
/// addresses are returned in order to borrow others.
class PageHeap {
public:
    PageHeap(AddressSpace& space, statistics::CommitBudget& budget, unsigned pool_number,
             const HeapOptions& options, statistics::PoolTotals& totals) noexcept;
    PageHeap(const PageHeap&) = delete;
    PageHeap& operator=(const PageHeap&) = delete;
    /// Returns everything to the system, including spans in use.
    ~PageHeap();

    /// Returns a committed span, and grows the heap if needed. Returns nullptr if growth is
    /// refused. In that case free memory may have been given back to make room, and addresses
    /// returned; nothing else has changed.
    Span* allocate(const PageRequest& request, SlowPath& path) noexcept;
    /// Frees a span in use. Gives free memory back if more is free than the retention limit allows.
    void free(Span& span, Changes& changes) noexcept;
    /// Grows a span in use to `pages` pages in place if the memory behind it is free. Returns
    /// false, and changes nothing, otherwise.
    bool extend(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Moves the pages of a span in use with their content to a cold run of `pages` pages. Only the
    /// difference is committed. Returns an extent with the old addresses, which the caller passes
    /// to `take_left`. Returns nullptr, and leaves the span unchanged, if free memory could hold
    /// the block or if nothing can be moved.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Adds the extent that `move` returned to the free extents.
    void take_left(Span& left) noexcept;

    /// Commits memory until the capacity is at least `bytes`, and touches all free memory. Returns
    /// false if that is refused. In that case nothing is committed, but addresses of cold memory
    /// may have been returned. Other threads are served while it touches pages.
    bool reserve(std::size_t bytes, SlowPath& path) noexcept;
    /// Touches pages in use that were committed recently and will all be written, with larger pages
    /// if those are the cheapest. If the system refuses, the first access touches them.
    void prefault(PageRun run) noexcept;
    /// If a bucket's new span requested a huge page, touches that page and records its cost. The
    /// caller has a block of the span and holds no lock.
    void try_huge_page(const SlowPath& path) noexcept;
    /// Gives back all free memory, including what `reserve` prepared, and returns its addresses.
    /// Returns the bytes given back.
    std::size_t trim(Changes& changes) noexcept;
    /// Gives back up to `bytes` free bytes, but nothing that `reserve` prepared.
    void give_back(std::size_t bytes, Changes& changes) noexcept;
    /// If a retention period has ended, gives back the memory that was not needed during all of it
    /// and returns true.
    bool keep_to_retention(Changes& changes) noexcept;
    /// Returns the addresses of cold memory to the address space, in whole granules.
    void lend_back() noexcept;
    /// The number of the current period.
    std::uint32_t period() const noexcept { return retention_.period(); }
    /// The length of a period that begins now.
    std::uint64_t period_ns() const noexcept;
    /// Sets the limit up to which the capacity may grow from now on; 0 means no limit. Memory above
    /// it that `reserve` prepared may be given back. REQUIRES: the lock is held.
    void limit_capacity(std::size_t bytes) noexcept;

    std::size_t capacity() const noexcept {
        return totals_.capacity_bytes.load(std::memory_order_relaxed);
    }
    std::size_t lent_bytes() const noexcept {
        return totals_.reserved_bytes.load(std::memory_order_relaxed);
    }
    /// Counts bytes of free blocks that enter (or, if negative, leave) depots or threads' caches.
    /// If retention is limited, they count as free memory.
    void note_kept_elsewhere(std::ptrdiff_t bytes) noexcept {
        if (options_.retain.bytes == SIZE_MAX) [[likely]]
            return;
        kept_elsewhere_.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
    }
    /// Returns whether retention allows `bytes` more free bytes in depots, threads' caches or the
    /// large-block cache.
    bool may_keep_elsewhere(std::size_t bytes) const noexcept {
        return options_.retain.bytes == SIZE_MAX || kept_bytes() + bytes <= options_.retain.bytes;
    }

    AddressSpace& space() noexcept { return space_; }
    unsigned pool_number() const noexcept { return number_; }
    const HeapOptions& options() const noexcept { return options_; }

    /// Called in the child of a fork, where threads that touched memory do not exist. The lock is
    /// not held.
    void after_fork_in_child() noexcept { touching_ = 0; }

    /// While the lock is held, look-ups of any address are safe.
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

    // page_heap.cpp: taking and freeing. REQUIRES: the lock is held.
    Span* take(const PageRequest& request, SlowPath& path) noexcept;
    Span* find_hot(const PageRequest& request) noexcept;
    Span* cut(Span& extent, const PageRequest& request) noexcept;
    void add_extent(Span& extent, PageKind kind) noexcept;
    void remove_extent(Span& extent) noexcept;
    Span* neighbour(PageNumber page, PageKind kind) noexcept;
    void mark_in_use(Span& span, PageKind kind) noexcept;
    void clear_marks(Span& span) noexcept;
    void count_free() noexcept;
    std::size_t kept_bytes() const noexcept;
    void report_free(Refusal& refusal) noexcept;

    // page_heap_growth.cpp: committing. REQUIRES: the lock is held. A refusal sets `shortage`.
    bool grow(const PageRequest& request, SlowPath& path) noexcept;
    bool commit_up_to(std::size_t bytes, SlowPath& path) noexcept;
    void touch_free() noexcept;  // takes the lock itself
    Position cheapest_position(const PageRequest& request) noexcept;
    Position position_beside(Span& cold, const PageRequest& request) noexcept;
    bool commit_at(Position position, Surplus surplus, SlowPath& path) noexcept;
    std::size_t wanted_bytes(Position position, Surplus surplus, SlowPath& path) const noexcept;
    bool commit_run(Span& cold, PageRun run) noexcept;
    bool commit_alone(Span& cold, PageRun run) noexcept;
    bool isolate(Span& cold, PageRun run) noexcept;
    void count_growth(std::size_t bytes) noexcept;

    // page_heap_fresh.cpp: requests for larger pages. REQUIRES: the lock is held, except for the
    // last.
    void request_huge_pages(Span& extent) noexcept;
    void request_for_span(Span& extent, const PageRequest& request, SlowPath& path) noexcept;
    void request_pages(Folio folio, PageRun run) noexcept;
    void touch_fresh(Folio folio, PageNumber first, std::size_t bytes) noexcept;

    // page_heap_lending.cpp: addresses. REQUIRES: the lock is held, except for the last.
    bool borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept;
    void note_loan(PageRun run) noexcept;
    void collect_cold(SpanList& leaving) noexcept;
    static PageRun granules_in(const Span& extent) noexcept;
    void return_addresses(SpanList& leaving) noexcept;

    // page_heap_moving.cpp. REQUIRES: the lock is held, except for `try_move`.
    Span* commit_behind(const Span& span, PageCount pages, SlowPath& path) noexcept;
    void join_front(Span& span, Span& extent, PageCount pages) noexcept;
    Span* try_move(Span& span, PageCount pages, SlowPath& path) noexcept;  // takes the lock
    Position target_of_move(PageRun from, PageCount pages) noexcept;

    // page_heap_giving.cpp: giving back. The lock is not held, except for `collect` and what it
    // calls.
    std::size_t shed(std::size_t bytes, Changes& changes) noexcept;
    Span* extent_to_give(std::size_t pages) noexcept;
    void collect(SpanList& leaving, std::size_t bytes) noexcept;
    std::size_t drop(SpanList& leaving, Changes& changes) noexcept;
    Span* keep_front(Span& extent, PageCount pages) noexcept;

    // While an object of this class exists, free memory may be touched without the lock: the heap
    // keeps its addresses.
    class Touching {
    public:
        explicit Touching(PageHeap& heap) noexcept : heap_(heap) {
            const std::lock_guard guard(heap.mutex_);
            ++heap.touching_;
        }
        ~Touching() {
            const std::lock_guard guard(heap_.mutex_);
            --heap_.touching_;
        }
        Touching(const Touching&) = delete;
        Touching& operator=(const Touching&) = delete;

    private:
        PageHeap& heap_;
    };

    AddressSpace& space_;
    statistics::CommitBudget& budget_;
    const unsigned number_;
    const HeapOptions options_;
    statistics::PoolTotals& totals_;
    RecordPool<Span> spans_;
    std::atomic<std::size_t> kept_elsewhere_ = 0;  // relaxed: a count that orders nothing
    std::mutex mutex_;
    // Guarded by mutex_:
    ExtentBins hot_;
    ExtentBins cold_;
    Retention retention_;
    // What `reserve` prepared: retention does not reduce the capacity below it.
    std::size_t floor_ = 0;
    std::size_t max_capacity_;  // 0: no limit
    PageRun loans_ = {};        // contains everything that was ever lent to this heap
    unsigned touching_ = 0;     // threads that touch free memory
};

}  // namespace tensorpool::pages
