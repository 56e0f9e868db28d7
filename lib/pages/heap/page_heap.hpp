#pragma once

#include <thread>

#include "pages/heap/heap_shard.hpp"
#include "pages/large_sizes.hpp"

namespace tensorpool::pages {

/// The shards of one page heap (shards.hpp), and the marked shard, from which spans of the kind
/// `marked` come. All but the first are made at first use. Thread-safe.
class HeapShards {
public:
    explicit HeapShards(HeapCommon& common) noexcept : common_(common), shards_(common, 0U) {}
    ~HeapShards() {
        shards_.for_each_other(shards_.first(), discard);
        if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) discard(*marked);
    }

    /// Returns the calling thread's shard. The caller holds no shard's lock.
    HeapShard& own() noexcept {
        return shards_.own([this](unsigned number) noexcept { return make(number); }, discard);
    }
    /// Returns the marked shard, or nullptr if memory is short. The caller holds no shard's lock.
    HeapShard* marked() noexcept {
        HeapShard* marked = marked_.load(std::memory_order_acquire);
        if (marked != nullptr) return marked;
        const std::lock_guard guard(shards_.first());
        marked = marked_.load(std::memory_order_relaxed);
        if (marked == nullptr) {
            marked = make(AddressSpace::marked_shard);
            marked_.store(marked, std::memory_order_release);
        }
        return marked;
    }
    /// Returns the shard that a span in use belongs to. A shard borrows its addresses itself, in
    /// whole granules.
    HeapShard& of(const Span& span) noexcept {
        const unsigned number = common_.space.shard_of(span.first_page);
        return number == AddressSpace::marked_shard ? *marked_.load(std::memory_order_acquire)
                                                    : *shards_.find(number);
    }

    template <class Function>
    void for_each(Function function) noexcept {
        shards_.for_each(function);
        HeapShard* const marked = marked_.load(std::memory_order_acquire);
        if (marked != nullptr) function(*marked);
    }
    /// Those of groups of processors.
    PerShard<HeapShard>& ordinary() noexcept { return shards_; }

    void report_free(Refusal& refusal) noexcept {
        refusal.knows_free = true;
        refusal.free_pages = 0;
        refusal.largest_free = 0;
        for_each([&](HeapShard& shard) { shard.report_free(refusal); });
    }

    /// All locks. While they are held, no shard is made.
    void lock() noexcept {
        for_each([](HeapShard& shard) { shard.lock(); });
    }
    void unlock() noexcept {
        // The first shard last: while it is locked, no other shard is made.
        if (HeapShard* const marked = marked_.load(std::memory_order_relaxed)) marked->unlock();
        shards_.for_each_other(shards_.first(), [](HeapShard& shard) { shard.unlock(); });
        shards_.first().unlock();
    }

private:
    HeapShard* make(unsigned number) noexcept {
        void* const memory = platform::map(sizeof(HeapShard), platform::page_bytes());
        if (memory == nullptr) return nullptr;
        common_.totals.record_bytes.fetch_add(sizeof(HeapShard), std::memory_order_relaxed);
        common_.kept.divide();
        return new (memory) HeapShard(common_, number);
    }
    static void discard(HeapShard& shard) noexcept {
        shard.~HeapShard();
        platform::unmap(&shard, sizeof(HeapShard));
    }

    HeapCommon& common_;
    PerShard<HeapShard> shards_;
    // Made under the lock of the first shard; acquire and release.
    std::atomic<HeapShard*> marked_ = nullptr;
};

inline void end_marks_of(Span& span, PageEntry entry) noexcept {
    if (entry.is_marked()) {
        BlockStates& states = *span.states.load(std::memory_order_relaxed);
        for (unsigned index = 0; index != span.blocks; ++index) {
            base::BlockMark* const mark =
                states.marks[index].exchange(nullptr, std::memory_order_relaxed);
            if (mark != nullptr) mark->on_free(base::block_bytes(0, span.marked_bucket()));
        }
    } else if (entry.is_large_in_use() && span.is_marked) {
        span.take_mark().on_free(span.bytes());
    }
}

// The first entry of each span and extent refers to its record.
inline void end_marks_in(const AddressSpace& space, unsigned pool_number, PageRun lent) noexcept {
    const PageMap& map = space.map();
    for (PageNumber page = lent.first; page < lent.first + lent.count;) {
        if (page % granule_pages == 0 && !space.is_lent_to(pool_number, map.address_of(page))) {
            page += granule_pages;
            continue;
        }
        const PageEntry entry = map.at(page);
        if (entry.empty() || !entry.has_span() || entry.pool_number() != pool_number) {
            ++page;
            continue;
        }
        Span& span = *entry.span();
        end_marks_of(span, entry);
        page = std::max(span.end_page(), page + 1);
    }
}

/// One pool's pages. They are divided among shards (shards.hpp): each thread takes free memory of
/// its shard first, then of others, and then lets its own shard grow. The capacity is all that is
/// committed. Thread-safe. System calls that drop pages are made without a lock, except when pages
/// are moved and when addresses are returned in order to borrow others.
class PageHeap {
public:
    PageHeap(AddressSpace& space, limits::CommitBudget& process, unsigned pool_number,
             const HeapOptions& options, statistics::PoolTotals& totals) noexcept
        : common_(space, process, pool_number, options, totals), shards_(common_) {}
    /// Returns everything to the system, including spans in use. Before the records of spans end:
    /// entries of the page map refer to them until then.
    ~PageHeap() { common_.loans.give_back_all(); }

    /// Returns a committed span, and grows the heap if needed. A span of the kind `marked` lies at
    /// low addresses (address_space.hpp) if some are left. Returns nullptr if growth is refused. In
    /// that case free memory may have been given back to make room, and addresses returned; nothing
    /// else has changed.
    Span* allocate(const PageRequest& request, SlowPath& path) noexcept {
        if (request.alignment > granule_pages &&
            request.alignment > common_.space.max_alignment()) {
            path.refusal = {"the largest alignment", common_.space.max_alignment() * page_bytes};
            path.refusal.advice = "an alignment up to that limit is supported";
            return nullptr;
        }
        if (request.kind == PageKind::marked) return take_marked(request, path);
        Span* const span = take_free(request, path);
        if (span != nullptr || !request.may_grow || !path.may_grow) return span;
        return grow_and_take(shards_.own(), request, path);
    }
    /// Frees a span in use. Gives free memory back if more is free than the retention limit allows.
    void free(Span& span, Changes& changes, Zeroed zeroed = Zeroed::no) noexcept {
        shards_.of(span).free(span, zeroed);
        if (const std::size_t excess = kept().excess(); excess != 0) give_back(excess, changes);
    }
    /// Grows a span in use to `pages` pages in place if the memory behind it is free. Returns
    /// false, and changes nothing, otherwise.
    bool extend(Span& span, PageCount pages, SlowPath& path) noexcept {
        HeapShard& shard = shards_.of(span);
        if (shard.extend(span, pages, HeapShard::MayCommit::no, path)) return true;
        const std::lock_guard guard(common_.growth);
        return shard.extend(span, pages, HeapShard::MayCommit::yes, path);
    }
    /// Frees all but the first `pages` pages of a span in use. Returns false, and changes nothing,
    /// if there is no memory for a record.
    bool shorten(Span& span, PageCount pages) noexcept {
        return shards_.of(span).shorten(span, pages);
    }
    /// Moves the pages of a span in use with their content to a cold run of `pages` pages. Only the
    /// difference is committed. Returns an extent with the old addresses, which the caller passes
    /// to `take_left`. Returns nullptr, and leaves the span unchanged, if free memory could hold
    /// the block or if nothing can be moved. If free committed memory can hold the block, the
    /// caller copies it there instead.
    Span* move(Span& span, PageCount pages, SlowPath& path) noexcept {
        bool has_free = false;
        shards_.ordinary().for_each(
            [&](HeapShard& shard) { has_free = has_free || shard.has_free(pages); });
        if (has_free) return nullptr;
        const std::size_t lent = common_.loans.bytes();
        Span* left = nullptr;
        {
            const std::lock_guard guard(common_.growth);
            left = shards_.of(span).move(span, pages, path);
        }
        if (left == nullptr && common_.loans.bytes() > lent) lend_back();
        return left;
    }
    void take_left(Span& left) noexcept { shards_.of(left).take_left(left); }

    /// Commits memory until the capacity is at least `bytes`, and touches all free memory. Returns
    /// false if that is refused. In that case nothing is committed, but addresses of cold memory
    /// may have been returned. Other threads are served while it touches pages.
    bool reserve(std::size_t bytes, SlowPath& path) noexcept {
        const std::size_t lent = common_.loans.bytes();
        if (!commit_up_to(bytes, path)) {
            // Another shard may hold the addresses that are missing.
            const bool may_retry = path.shortage == 0 && shards_.ordinary().has_others();
            if (may_retry || common_.loans.bytes() > lent) lend_back();
            if (!may_retry || !commit_up_to(bytes, path)) return false;
        }
        const Touching touching(common_);
        shards_.for_each([](HeapShard& shard) { shard.touch_free(); });
        return true;
    }
    /// If a bucket's new span requested a huge page, touches that page and records its cost. The
    /// caller has a block of the span and holds no lock.
    void try_huge_page(const SlowPath& path) noexcept {
        const PageRun run = path.untried;
        if (run.count == 0) return;
        const Touching touching(common_);
        // Other threads may have freed the span, and its addresses may have been returned.
        const PageEntry entry = space().map().at(run.first);
        if (!entry.is_bucket() || entry.pool_number() != pool_number()) return;
        common_.fresh.try_huge_page(run);
    }
    /// Gives back all free memory, including what `reserve` prepared, and returns its addresses.
    /// Returns the bytes given back.
    std::size_t trim(Changes& changes) noexcept {
        {
            const std::lock_guard guard(common_.growth);
            capacity().forget_prepared();
        }
        const std::size_t bytes = give_back(SIZE_MAX, changes, Prepared::given_back);
        lend_back();
        return bytes;
    }
    /// Whether what `reserve` prepared may be given back.
    enum class Prepared : bool { kept, given_back };
    /// Gives back up to `bytes` free bytes. Returns the bytes given back.
    std::size_t give_back(std::size_t bytes, Changes& changes,
                          Prepared prepared = Prepared::kept) noexcept {
        std::size_t given = 0;
        shards_.for_each([&](HeapShard& shard) {
            if (bytes == 0) return;
            SpanList leaving;
            std::size_t collected = 0;
            if (prepared == Prepared::given_back) {
                collected = shard.collect(leaving, bytes);
            } else {
                // Both steps under one lock: if two threads give back at once, the second one sees
                // the capacity that the first one left.
                const std::lock_guard guard(common_.growth);
                collected = shard.collect(leaving, std::min(bytes, capacity().above_prepared()));
            }
            bytes -= std::min(bytes, collected);
            given += shard.drop(leaving, changes);
        });
        return given;
    }
    /// Lets the system take all free memory, which stays committed and is used as before. For use
    /// when memory is short, also for other processes and other parts of this one.
    void offer_free() noexcept {
        std::size_t offered = 0;
        shards_.for_each([&](HeapShard& shard) { offered += shard.offer_free(); });
        kept().note_offered(offered);
    }
    /// If a retention period has ended, gives back the memory that was not needed during all of it
    /// and returns true. Takes no lock if none has ended.
    bool keep_to_retention(Changes& changes) noexcept {
        const std::uint64_t now_ns = options().clock_ns();
        if (!kept().has_period_ended(now_ns)) return false;
        std::size_t unneeded = 0;
        {
            const std::lock_guard guard(common_.growth);
            if (!kept().has_period_ended(now_ns)) return false;  // another thread was first
            unneeded = kept().begin_period(now_ns);
        }
        if (unneeded != 0) give_back(unneeded, changes);
        // If the address space is limited, other code in the process may need the addresses.
        if (platform::available_address_space() != SIZE_MAX) lend_back();
        return true;
    }
    /// Ends the marks of all blocks in use. REQUIRES: no other call is under way.
    void end_marks() noexcept {
        end_marks_in(common_.space, common_.number, common_.loans.low());
        end_marks_in(common_.space, common_.number, common_.loans.ordinary());
    }
    /// Returns the addresses of cold memory to the address space, in whole granules.
    void lend_back() noexcept {
        shards_.for_each([this](HeapShard& shard) {
            SpanList leaving;
            {
                const std::lock_guard guard(common_.growth);
                if (common_.touching == 0) shard.collect_cold(leaving);
            }
            shard.return_addresses(leaving);
        });
    }

    HeapCapacity& capacity() noexcept { return common_.capacity; }
    const HeapCapacity& capacity() const noexcept { return common_.capacity; }
    KeptMemory& kept() noexcept { return common_.kept; }
    const KeptMemory& kept() const noexcept { return common_.kept; }
    const FreshMemory& fresh() const noexcept { return common_.fresh; }
    AddressSpace& space() noexcept { return common_.space; }
    unsigned pool_number() const noexcept { return common_.number; }
    const HeapOptions& options() const noexcept { return common_.options; }

    /// Called in the child of a fork, where threads that touched memory do not exist. The lock is
    /// not held.
    void after_fork_in_child() noexcept { common_.touching = 0; }

    /// The lock of growth and those of all shards. While it is held, look-ups of any address are
    /// safe.
    void lock() noexcept {
        common_.growth.lock();
        shards_.lock();
    }
    void unlock() noexcept {
        shards_.unlock();
        common_.growth.unlock();
    }

private:
    Span* take_free(const PageRequest& request, SlowPath& path) noexcept {
        HeapShard& own = shards_.own();
        Span* span = own.take_free(request, path);
        if (span != nullptr) return span;
        shards_.ordinary().for_each_other(own, [&](HeapShard& other) {
            if (span == nullptr) span = other.take_free(request, path);
        });
        return span;
    }
    // If the low addresses are used up, other ones serve as well: inline frees are then hidden
    // (`blocks::note_addresses`).
    Span* take_marked(const PageRequest& request, SlowPath& path) noexcept {
        const bool may_grow = request.may_grow && path.may_grow;
        if (HeapShard* const marked = shards_.marked()) {
            Span* span = marked->take_free(request, path);
            if (span != nullptr || !may_grow) return span;
            span = grow_and_take(*marked, request, path);
            if (span != nullptr || path.shortage != 0) return span;
        }
        Span* const span = take_free(request, path);
        return span != nullptr || !may_grow ? span : grow_and_take(shards_.own(), request, path);
    }
    // Free extents that are too small for the request count against a limit. They are given back
    // until there is enough room or nothing is left. One of them may be an extent that the growth
    // relied on, so the request is tried again each time.
    Span* grow_and_take(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept {
        const std::size_t lent = common_.loans.bytes();
        do {
            const std::lock_guard guard(common_.growth);
            path.shortage = 0;
            if (Span* const span = take_by_growth(own, request, path)) return span;
        } while (path.shortage != 0 && give_back(path.shortage, path, Prepared::given_back) != 0);
        if (!path.refusal.knows_free)
            shards_.report_free(path.refusal);  // it could not be given back
        if (common_.loans.bytes() > lent) lend_back();
        return nullptr;
    }
    // If the thread's shard finds no addresses, another one may have some.
    Span* take_by_growth(HeapShard& own, const PageRequest& request, SlowPath& path) noexcept {
        Span* span = own.take(request, path);
        if (!own.is_marked()) {
            shards_.ordinary().for_each_other(own, [&](HeapShard& other) {
                if (span == nullptr && path.shortage == 0) span = other.take(request, path);
            });
        }
        if (span == nullptr && (path.shortage == 0 || kept().free_bytes() == 0))
            shards_.report_free(path.refusal);
        return span;
    }
    bool commit_up_to(std::size_t bytes, SlowPath& path) noexcept {
        HeapShard& own = shards_.own();
        const std::lock_guard guard(common_.growth);
        path.shortage = 0;
        // A limit that is not a multiple of the page size is reached up to whole pages.
        const std::size_t limit = capacity().max();
        if (bytes <= limit) bytes = std::min(bytes, base::align_down(limit, page_bytes));
        const std::size_t before = capacity().bytes();
        if (before < bytes) {
            const std::size_t missing = bytes - before;
            if (missing > max_large_bytes) {
                path.refusal = {"address space", max_large_bytes};
                path.refusal.advice = "no pool can reserve more than that at once";
                return false;
            }
            const auto pages = static_cast<PageCount>(base::ceil_divide(missing, page_bytes));
            if (!own.commit_pages(pages, path)) {
                path.refusal.missing =
                    0;  // freeing blocks does not help: they stay part of capacity
                return false;
            }
        }
        capacity().prepare(base::align_up(bytes, page_bytes));
        return true;
    }

    HeapCommon common_;
    HeapShards shards_;
};

}  // namespace tensorpool::pages
