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

/// Returns the smallest extent that holds this many pages, or else the largest. If a little were
/// taken from a large extent, the next large request would have to grow elsewhere.
inline Span* extent_to_give(ExtentBins& hot, std::size_t pages) noexcept {
    if (pages > hot.total_pages()) return hot.largest();
    Span* const enough = hot.find(static_cast<PageCount>(pages), 1);
    return enough != nullptr ? enough : hot.largest();
}

/// The pages of one pool that one shard borrowed. Commits, divides and gives back. Each function
/// takes the shard's lock itself. Thread-safe; where a comment says GROWTH, the caller holds
/// `HeapCommon::growth`.
class HeapShard {
public:
    HeapShard(HeapCommon& common, unsigned number) noexcept
        : common_(common),
          space_(common.space),
          number_(number),
          extents_(common.space, common.number, number) {
        extents_.records().count_in(common.totals.record_bytes);
        if (common.options.keep_records) extents_.records().keep_slabs();
    }

    /// Cuts a span out of free memory. Returns nullptr if no extent fits, or, with a refusal, if
    /// there is no memory for a record.
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        Span* const extent = extents_.find_hot(request.pages, request.alignment);
        return extent == nullptr ? nullptr : take_hot(*extent, request, path);
    }
    /// Like `take_free`, but grows the shard if no extent fits. If that is refused, `path.refusal`
    /// and `path.shortage` say why. GROWTH.
    Span* take(const PageRequest& request, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        Span* extent = extents_.find_hot(request.pages, request.alignment);
        if (extent == nullptr) {
            if (!grow(request, path)) return nullptr;
            extent = extents_.find_hot(request.pages, request.alignment);
        }
        if (extent != nullptr) return take_hot(*extent, request, path);
        path.refusal = no_records();
        return nullptr;
    }
    void free(Span& span, Zeroed zeroed) noexcept {
        const std::lock_guard guard(mutex_);
        extents_.clear_entries(span);
        span.clean = false;
        span.zeroed = zeroed == Zeroed::yes;
        span.set_untouched_end(0);
        extents_.add(span, PageKind::extent_hot);
        count_free();
    }
    bool has_free(PageCount pages) noexcept {
        const std::lock_guard guard(mutex_);
        return extents_.find_hot(pages, 1) != nullptr;
    }
    void report_free(Refusal& refusal) noexcept {
        const std::lock_guard guard(mutex_);
        refusal.free_pages += extents_.hot().total_pages() * page_bytes;
        extents_.hot().for_each([&](const Span& extent) {
            refusal.largest_free = std::max(refusal.largest_free, extent.bytes());
        });
    }

    /// Commits so many adjacent pages, without a surplus. GROWTH.
    bool commit_pages(PageCount pages, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        if (common_.capacity.room_for(bytes_of(pages), path) == 0) return false;
        Span* cold = extents_.cold().find(pages, 1);
        if (cold == nullptr) {
            if (!borrow(pages, 1, path.refusal)) return false;
            cold = extents_.cold().find(pages, 1);
        }
        if (cold == nullptr || !commit_at({cold, cold->first_page, pages}, Surplus::no, path))
            return false;
        count_free();
        return true;
    }
    /// Touches all free memory. The heap keeps its addresses: see `Touching`. Touches a few extents
    /// at a time, from the lowest address up. Other threads may allocate or give back these extents
    /// at the same time, which is safe: touching changes no content, and the system refuses it only
    /// for pages that are no longer accessible.
    void touch_free() noexcept {
        std::array<PageRun, 64> runs;
        for (PageNumber from = 0;;) {
            std::unique_lock lock(mutex_);
            if (from == 0) {
                extents_.note_touched();
                count_free();
            }
            if (common_.options.huge_pages >= HugePages::automatic) {
                extents_.hot().for_each(
                    [this](Span& extent) { common_.fresh.request_huge_pages(extent); });
            }
            const std::span<const PageRun> found = extents_.hot().lowest_from(from, runs);
            lock.unlock();
            for (const PageRun& run : found) {
                platform::prefault(space_.address_of(run.first), bytes_of(run.count));
            }
            if (found.size() < runs.size()) return;
            from = found.back().first + found.back().count;
        }
    }

    enum class MayCommit : bool { no, yes };
    /// See PageHeap::extend. GROWTH if the call may commit memory.
    bool extend(Span& span, PageCount pages, MayCommit may_commit, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        const PageCount more = pages - span.pages;
        Span* const behind = hot_behind(span, more, may_commit, path);
        if (behind == nullptr) return false;
        extents_.lengthen(span, *behind, more);
        count_free();
        return true;
    }
    bool shorten(Span& span, PageCount pages) noexcept {
        const std::lock_guard guard(mutex_);
        const bool is_done = extents_.shorten(span, pages);
        count_free();
        return is_done;
    }
    /// See PageHeap::move and `take_left`. The first: GROWTH.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept {
        const std::lock_guard guard(mutex_);
        const PageRun from{span.first_page, span.pages};
        // A NUMA policy neither moves with the pages nor stays at the old addresses.
        if (common_.options.numa.placement != NumaPolicy::Placement::system) return nullptr;
        if (!span.is_of_whole_pages() || !space_.memory().may_move(from)) return nullptr;
        const std::size_t more = bytes_of(pages - from.count);
        if (common_.capacity.room_for(more, path) == 0) return nullptr;
        Span* cold = extents_.cold().largest();
        if (cold == nullptr || cold->pages < room_for_move(pages)) {
            Refusal ignored;
            if (!borrow(room_for_move(pages), 1, ignored)) return nullptr;
            cold = extents_.cold().largest();
        }
        const GrowthPosition to = position_for_move(*cold, from, pages);
        LentMemory::Moved moved = LentMemory::Moved::none;
        const std::size_t grown = common_.capacity.grow(more, more, path, [&](std::size_t) {
            if (!commit_alone(*cold, to.run())) return false;
            moved = space_.memory().move(from, to.first);
            if (moved != LentMemory::Moved::none) return true;
            // It was never touched, so it stays clean.
            extents_.add(*cold, PageKind::extent_cold);
            return false;
        });
        if (grown == 0) return nullptr;
        extents_.clear_entries(span);
        span.first_page = to.first;
        span.pages = pages;
        span.clean = false;
        span.huge = false;
        extents_.mark_in_use(span, span.kind);
        Span& left = *cold;
        left.first_page = from.first;
        left.pages = from.count;
        left.clean = moved == LentMemory::Moved::all;
        left.touched = !left.clean;
        left.set_untouched_end(0);
        left.zeroed = false;
        return &left;
    }
    void take_left(Span& left) noexcept {
        const std::lock_guard guard(mutex_);
        extents_.add(left, PageKind::extent_cold);
    }

    /// Takes hot extents of up to `bytes` bytes out of the heap and reduces the capacity. Returns
    /// their bytes. The caller passes the extents to `drop`. The last extent is taken in part,
    /// unless there is no memory for a record to split it.
    std::size_t collect(SpanList& leaving, std::size_t bytes) noexcept {
        const std::lock_guard guard(mutex_);
        std::size_t collected = 0;
        while (collected < bytes) {
            const std::size_t wanted = base::ceil_divide(bytes - collected, page_bytes);
            Span* const extent = extent_to_give(extents_.hot(), wanted);
            if (extent == nullptr) break;
            const auto count = static_cast<PageCount>(std::min<std::size_t>(wanted, extent->pages));
            if (!extents_.isolate(*extent, {extent->end_page() - count, count}))
                extents_.remove(*extent);
            leaving.push_back(*extent);
            collected += extent->bytes();
            common_.capacity.take_out(extent->bytes());
        }
        if (collected != 0) count_free();
        return collected;
    }
    /// Drops the pages of collected extents, which become cold. Returns the bytes given back. If
    /// the system refuses, the extent stays hot.
    std::size_t drop(SpanList& leaving, Changes& changes) noexcept {
        std::size_t dropped = 0;
        while (!leaving.empty()) {
            Span& extent = leaving.front();
            leaving.pop_front();
            const std::size_t bytes = extent.bytes();
            const bool gone = space_.memory().decommit({extent.first_page, extent.pages});
            const std::lock_guard guard(mutex_);
            extent.clean = gone && extent.is_of_whole_pages();
            extent.touched = !extent.clean;
            extent.set_untouched_end(0);
            extents_.add(extent, gone ? PageKind::extent_cold : PageKind::extent_hot);
            if (gone) {
                common_.capacity.give_back(bytes);
                dropped += bytes;
            } else {
                common_.capacity.put_back(bytes);
                count_free();
            }
        }
        changes.given_back += dropped;
        return dropped;
    }
    /// Lets the system take the pages of all hot extents, which stay in the heap. Returns their
    /// bytes. Holds the lock until then, so that no thread gets pages that are being offered.
    std::size_t offer_free() noexcept {
        const std::lock_guard guard(mutex_);
        std::size_t offered = 0;
        extents_.hot().for_each([&](const Span& extent) {
            const PageCount touched = extent.pages - extent.untouched_end();
            if (touched != 0 && space_.memory().offer({extent.first_page, touched})) {
                offered += bytes_of(touched);
            }
        });
        return offered;
    }

    /// Takes the whole granules of cold extents out of the heap, for `return_addresses`. GROWTH.
    void collect_cold(SpanList& leaving) noexcept {
        const std::lock_guard guard(mutex_);
        take_cold(leaving);
    }
    void return_addresses(SpanList& leaving) noexcept {
        while (!leaving.empty()) {
            Span& extent = leaving.front();
            leaving.pop_front();
            common_.loans.give_back({extent.first_page, extent.pages});
            extents_.records().destroy(&extent);
        }
    }

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
    Span* take_hot(Span& extent, const PageRequest& request, SlowPath& path) noexcept {
        const PageRun run{ExtentBins::position_in(extent, request.pages, request.alignment),
                          request.pages};
        if (request.huge) common_.fresh.request_for_run(extent, run, path);
        if (!extents_.isolate(extent, run)) {
            path.refusal = no_records();
            return nullptr;
        }
        extents_.mark_in_use(extent, request.kind);
        count_free();
        return &extent;
    }
    void count_free() noexcept {
        const std::size_t free_bytes = extents_.hot().total_pages() * page_bytes;
        const std::size_t untouched_bytes = extents_.untouched_pages() * page_bytes;
        common_.kept.count_free(
            free_bytes - std::exchange(counted_free_, free_bytes),
            untouched_bytes - std::exchange(counted_untouched_, untouched_bytes));
    }

    // A refusal sets `shortage`.
    bool grow(const PageRequest& request, SlowPath& path) noexcept {
        GrowthPosition position = cheapest_position(extents_, request);
        if (position.cold == nullptr) {
            if (common_.capacity.room_for(bytes_of(request.pages), path) == 0) return false;
            if (!borrow(request.pages, request.alignment, path.refusal)) return false;
            position = cheapest_position(extents_, request);
            if (position.cold == nullptr) return false;
        }
        // Requests with so large an alignment are rare. Other requests would not use a surplus
        // behind the span.
        const bool is_apart = request.alignment > granule_pages;
        return commit_at(position, is_apart ? Surplus::no : Surplus::yes, path);
    }
    bool commit_at(const GrowthPosition& position, Surplus surplus, SlowPath& path) noexcept {
        Span& cold = *position.cold;
        const std::size_t needed = bytes_of(position.pages);
        const std::size_t room = common_.capacity.room_for(needed, path);
        if (room == 0) return false;
        const std::size_t whole = bytes_of(cold.end_page() - position.first);
        const std::size_t wanted =
            surplus == Surplus::no ? needed
                                   : common_.capacity.with_surplus(needed, whole, room, max_step());
        bool tried = false;
        const std::size_t grown =
            common_.capacity.grow(needed, wanted, path, [&](std::size_t bytes) {
                tried = true;
                if (!commit_alone(cold,
                                  {position.first, static_cast<PageCount>(bytes / page_bytes)}))
                    return false;
                if (common_.options.huge_pages == HugePages::always)
                    common_.fresh.request_huge_pages(cold);
                extents_.add(cold, PageKind::extent_hot);
                return true;
            });
        if (grown == 0) {
            common_.capacity.refuse(needed, tried, path);
            return false;
        }
        path.fresh = {position.first, static_cast<PageCount>(grown / page_bytes)};
        return true;
    }
    // Makes the run an extent of its own that is in no list, and commits it.
    bool commit_alone(Span& cold, PageRun run) noexcept {
        if (!extents_.isolate(cold, run)) return false;
        cold.huge = false;
        if (space_.memory().commit(run)) return true;
        extents_.add(cold, PageKind::extent_cold);
        return false;
    }
    // Most pools have few marked blocks.
    std::size_t max_step() const noexcept {
        constexpr std::size_t min_marked_step = std::size_t{256} << 10;
        if (!is_marked()) return SIZE_MAX;
        return std::max(bytes_of(common_.loans.low().count / 8), min_marked_step);
    }
    // Returns the hot extent behind the span if it has at least `pages` pages, after committing
    // what is missing. Returns nullptr otherwise.
    Span* hot_behind(const Span& span, PageCount pages, MayCommit may_commit,
                     SlowPath& path) noexcept {
        Span* const hot = extents_.find(span.end_page(), PageKind::extent_hot);
        const PageCount hot_pages = hot == nullptr ? 0 : hot->pages;
        if (hot_pages >= pages) return hot;
        if (may_commit == MayCommit::no) return nullptr;
        const PageCount missing = pages - hot_pages;
        Span* const cold = extents_.find(span.end_page() + hot_pages, PageKind::extent_cold);
        if (cold == nullptr || cold->pages < missing) return nullptr;
        if (!commit_at({cold, cold->first_page, missing}, Surplus::no, path)) return nullptr;
        return extents_.find(span.end_page(), PageKind::extent_hot);
    }
    bool borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept {
        Span* const cold = extents_.records().make();
        if (cold == nullptr) {
            refusal = no_records();
            return false;
        }
        const PageCount usual = is_marked() ? pages : space_.usual_loan(common_.loans.bytes());
        PageRun run = common_.loans.borrow(pages, usual, alignment, number_);
        if (run.count == 0 && common_.touching == 0) {
            SpanList leaving;
            take_cold(leaving);
            if (!leaving.empty()) {
                return_addresses(leaving);
                run = common_.loans.borrow(pages, pages, alignment, number_);
            }
        }
        if (run.count == 0) {
            extents_.records().destroy(cold);
            refusal = {"address space", space_.max_pages() * page_bytes};
            refusal.advice =
                "no run of addresses is long enough: fewer pools or larger blocks would "
                "help, or a higher `ulimit -v`";
            return false;
        }
        cold->first_page = run.first;
        cold->pages = run.count;
        cold->clean = true;
        extents_.add(*cold, PageKind::extent_cold);
        return true;
    }
    void take_cold(SpanList& leaving) noexcept {
        common_.loans.take_out(extents_.isolate_cold_granules(leaving));
    }

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
