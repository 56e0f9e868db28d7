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
    bool huge = false;     // all of it will be touched, and of a bucket's what follows it
    bool may_grow = true;  // otherwise only from what is free
};

/// What a call did to the pool's capacity, for the owner's callback.
struct Changes {
    std::size_t grown = 0;
    std::size_t given_back = 0;
    PageRun fresh = {};  // the last that was committed: nobody has touched it
};

using base::Refusal;

/// What one call of a pool needs on its way through the slow paths of an allocation, from the pool
/// down to the pages: each of them adds to it, and the pool reports it at the end.
struct SlowPath : Changes {
    Refusal refusal = {};  // why there is no block, if there is none
    bool may_grow = true;  // otherwise only what is free is taken, and that is no refusal
    /// Bytes that would have to be given back before the same growth can succeed; 0 if that would
    /// not help.
    std::size_t shortage = 0;
    /// A granule that asked last for a huge page, and that nobody has touched yet.
    PageRun untried = {};
};

/// The refusal where there is no memory for records.
Refusal no_records() noexcept;

struct HeapOptions {
    std::size_t max_capacity = 0;  // 0: none
    GrowthPolicy growth = {};
    RetentionPolicy retain = {};
    HugePages huge_pages = HugePages::buckets;
    NumaPolicy numa = {};
    /// What was a span's record may be read until the heap ends.
    bool keep_records = false;
    std::uint64_t (*clock_ns)() noexcept = nullptr;
    /// Chooses the pages that growing buckets, and `prefault`, ask for with `HugePages::buckets`;
    /// nullptr: huge ones, and none.
    FolioChoice* folios = nullptr;
    std::uint64_t (*thread_time_ns)() noexcept = platform::thread_time_ns;
};

/// One pool's pages: what the address space lent it, cut into spans in use, hot extents (free and
/// committed) and cold ones (free, not committed). No two hot extents touch, nor two cold ones.
/// Capacity is all that is committed. Thread-safe; system calls that drop pages are made outside of
/// the lock, but where pages move, or addresses are returned for want of others.
class PageHeap {
public:
    PageHeap(AddressSpace& space, statistics::CommitBudget& budget, unsigned pool_number,
             const HeapOptions& options, statistics::PoolTotals& totals) noexcept;
    PageHeap(const PageHeap&) = delete;
    PageHeap& operator=(const PageHeap&) = delete;
    /// Gives everything back, spans in use included.
    ~PageHeap();

    /// A span, committed; grows the heap if need be. nullptr when that is refused; then nothing has
    /// changed but that free memory may have been given back to make room, and addresses lent back.
    Span* allocate(const PageRequest& request, SlowPath& path) noexcept;
    void free(Span& span, Changes& changes) noexcept;
    /// Makes a span in use longer where it is, if what lies behind it is free. False, and it is as
    /// it was, otherwise.
    bool extend(Span& span, PageCount pages, SlowPath& path) noexcept;
    /// Moves the pages of a span in use, with their content, to a cold run where there is room for
    /// `pages`; only the difference is committed. Returns the addresses that it left, which
    /// `take_left` makes free; nullptr where free memory could hold it, or nothing can be moved:
    /// then it is as it was.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept;
    void take_left(Span& left) noexcept;

    /// Commits until capacity is at least `bytes`, and touches all that is free. False when that
    /// is refused: then nothing is committed, but cold addresses may have been lent back. Others
    /// are served while it touches.
    bool reserve(std::size_t bytes, SlowPath& path) noexcept;
    /// Touches pages that are in use, were committed lately and will all be written: in larger
    /// pages where these are the cheapest. Refused, they are touched later.
    void prefault(PageRun run) noexcept;
    /// Touches the huge page that a bucket's new span asked for, if it did, and remembers what that
    /// took. The caller has a block of the span, and no lock.
    void try_huge_page(const SlowPath& path) noexcept;
    /// Gives back all that is free, and lends its addresses back; returns the bytes.
    std::size_t trim(Changes& changes) noexcept;
    /// Gives back up to so many free bytes, but none that `reserve` prepared.
    void give_back(std::size_t bytes, Changes& changes) noexcept;
    /// Gives back what was not needed for a whole period, if one has just ended. True then.
    bool keep_to_retention(Changes& changes) noexcept;
    /// Lends the addresses of cold memory back, as far as they are whole granules.
    void lend_back() noexcept;
    /// The number of the present period.
    std::uint32_t period() const noexcept { return retention_.period(); }
    /// How long a period that begins now lasts.
    std::uint64_t period_ns() const noexcept;
    /// How far capacity may grow from now on; 0: no limit. What `reserve` prepared above it may be
    /// given back. The lock is held.
    void limit_capacity(std::size_t bytes) noexcept;

    std::size_t capacity() const noexcept {
        return totals_.capacity_bytes.load(std::memory_order_relaxed);
    }
    std::size_t lent_bytes() const noexcept {
        return totals_.reserved_bytes.load(std::memory_order_relaxed);
    }
    /// Free blocks that lie in depots or with threads, in bytes: they count as free where retention
    /// limits that.
    void note_kept_elsewhere(std::ptrdiff_t bytes) noexcept {
        if (options_.retain.bytes == SIZE_MAX) [[likely]]
            return;
        kept_elsewhere_.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
    }
    /// Whether so many free bytes more may stay there, or in the large-block cache.
    bool may_keep_elsewhere(std::size_t bytes) const noexcept {
        return options_.retain.bytes == SIZE_MAX || kept_bytes() + bytes <= options_.retain.bytes;
    }

    AddressSpace& space() noexcept { return space_; }
    unsigned pool_number() const noexcept { return number_; }
    const HeapOptions& options() const noexcept { return options_; }

    /// In the child of a fork: threads that touched memory are not there. The lock is not held.
    void after_fork_in_child() noexcept { touching_ = 0; }

    /// Held, look-ups of any address are safe.
    void lock() noexcept;
    void unlock() noexcept;

private:
    // Where to grow: these pages of a cold extent.
    struct Place {
        Span* cold = nullptr;
        PageNumber first = 0;
        PageCount pages = 0;
    };
    enum class Surplus : bool { no, yes };

    // page_heap.cpp: taking and freeing. The lock is held.
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
    void tell_free(Refusal& refusal) noexcept;

    // page_heap_growth.cpp: committing. The lock is held. A refusal sets `shortage`.
    bool grow(const PageRequest& request, SlowPath& path) noexcept;
    bool commit_up_to(std::size_t bytes, SlowPath& path) noexcept;
    void touch_free() noexcept;  // takes the lock itself
    Place cheapest_place(const PageRequest& request) noexcept;
    Place place_beside(Span& cold, const PageRequest& request) noexcept;
    bool commit_place(Place place, Surplus surplus, SlowPath& path) noexcept;
    std::size_t wanted_bytes(Place place, Surplus surplus, SlowPath& path) const noexcept;
    bool commit_run(Span& cold, PageRun run) noexcept;
    bool commit_alone(Span& cold, PageRun run) noexcept;
    bool isolate(Span& cold, PageRun run) noexcept;
    void count_growth(std::size_t bytes) noexcept;

    // page_heap_fresh.cpp: which pages fresh memory asks for. The lock is held, and need not be for
    // the last.
    void ask_for_huge_pages(Span& extent) noexcept;
    void ask_for_span(Span& extent, const PageRequest& request, SlowPath& path) noexcept;
    void ask(Folio folio, PageRun run) noexcept;
    void touch_fresh(Folio folio, PageNumber first, std::size_t bytes) noexcept;

    // page_heap_lending.cpp: addresses. The lock is held, and need not be for the last.
    bool borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept;
    void note_loan(PageRun run) noexcept;
    void collect_cold(SpanList& leaving) noexcept;
    static PageRun granules_in(const Span& extent) noexcept;
    void return_addresses(SpanList& leaving) noexcept;

    // page_heap_moving.cpp. The lock is held.
    Span* commit_behind(const Span& span, PageCount pages, SlowPath& path) noexcept;
    void join_front(Span& span, Span& extent, PageCount pages) noexcept;
    Span* try_move(Span& span, PageCount pages, SlowPath& path) noexcept;  // takes the lock
    Place place_to_move_to(PageRun from, PageCount pages) noexcept;

    // page_heap_giving.cpp: giving back. The lock is not held.
    std::size_t shed(std::size_t bytes, Changes& changes) noexcept;
    Span* extent_to_give(std::size_t pages) noexcept;
    void collect(SpanList& leaving, std::size_t bytes) noexcept;
    std::size_t drop(SpanList& leaving, Changes& changes) noexcept;
    Span* keep_front(Span& extent, PageCount pages) noexcept;

    // While it lives, free memory is touched without the lock: its addresses stay the heap's.
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
    std::atomic<std::size_t> kept_elsewhere_ = 0;  // relaxed: a figure
    std::mutex mutex_;
    // Below: under mutex_.
    ExtentBins hot_;
    ExtentBins cold_;
    Retention retention_;
    // What `reserve` prepared: retention does not take capacity below it.
    std::size_t floor_ = 0;
    std::size_t max_capacity_;  // 0: none
    PageRun loans_ = {};        // all that was ever lent to it lies in there
    unsigned touching_ = 0;     // threads that do
};

}  // namespace tensorpool::pages
