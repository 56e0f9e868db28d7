#pragma once

#include "pages/heap/page_heap.hpp"

namespace tensorpool::pages {

/// A cache of free, committed large blocks by size. `take` and `keep` cost one atomic exchange each
/// and no lock. The thread that exchanges a span out of the cache owns it. Cached spans have the
/// kind `large_cached`.
class LargeCache {
public:
    explicit LargeCache(statistics::PoolTotals& totals) noexcept : totals_(totals) {}

    /// Takes a span of exactly `pages` pages, which must be a rounded size. Returns nullptr if
    /// there is none.
    Span* take(PageCount pages) noexcept {
        for (Way& way : ways_[large_class_of(pages)]) {
            if (Span* const span = take_out(way)) return span;
        }
        return nullptr;
    }
    /// Puts a span into the cache. Returns false, and leaves it to the caller, if the cache has no
    /// room for another span of its size.
    bool keep(Span& span) noexcept {
        const unsigned large_class = large_class_of(span.pages);
        for (Way& way : ways_[large_class]) {
            if (!put_in(way, span)) continue;
            hint(large_class);
            return true;
        }
        return false;
    }
    /// Takes out all spans that were freed in a period before `period`, and calls `function` with
    /// each.
    template <class Function>
    void empty(std::uint32_t period, Function function) noexcept {
        for (unsigned word = 0; word < hint_words; ++word) {
            if (hints_[word].load(std::memory_order_relaxed) == 0) continue;
            for (std::uint64_t bits = hints_[word].exchange(0); bits != 0; bits &= bits - 1) {
                for (Way& way : ways_[word * 64 + static_cast<unsigned>(std::countr_zero(bits))]) {
                    Span* const span = take_out(way);
                    if (span != nullptr && (span->period < period || !keep(*span))) function(*span);
                }
            }
        }
    }

private:
    static constexpr unsigned ways = 4;
    using Way = std::atomic<Span*>;
    using Ways = std::array<Way, ways>;
    static constexpr unsigned hint_words = (large_class_count + 63) / 64;

    Span* take_out(Way& way) noexcept {
        if (way.load() == nullptr) return nullptr;
        Span* const span = way.exchange(nullptr, std::memory_order_acquire);
        if (span != nullptr) {
            totals_.large_cached_bytes.fetch_sub(span->bytes(), std::memory_order_relaxed);
        }
        return span;
    }
    bool put_in(Way& way, Span& span) noexcept {
        if (way.load(std::memory_order_relaxed) != nullptr) return false;
        // Counted before it can be taken out, so that the count never becomes negative.
        const std::size_t bytes = span.bytes();
        totals_.large_cached_bytes.fetch_add(bytes, std::memory_order_relaxed);
        Span* expected = nullptr;
        if (way.compare_exchange_strong(expected, &span, std::memory_order_seq_cst,
                                        std::memory_order_relaxed)) {
            return true;
        }
        totals_.large_cached_bytes.fetch_sub(bytes, std::memory_order_relaxed);
        return false;
    }
    void hint(unsigned large_class) noexcept {
        std::atomic<std::uint64_t>& word = hints_[large_class / 64];
        const std::uint64_t bit = std::uint64_t{1} << large_class % 64;
        if ((word.load() & bit) == 0) {
            word.fetch_or(bit, std::memory_order_relaxed);
        }
    }

    statistics::PoolTotals& totals_;
    // The release of `put_in` pairs with the acquire of `take_out`: changes to the span's record by
    // the thread that frees it come before changes by the thread that takes it.
    std::array<Ways, large_class_count> ways_ = {};
    // One bit for each class, clear only if the class holds no span. It is set after a way is
    // filled and cleared before the ways are searched, so no span is missed permanently. `keep` and
    // `empty` access ways and hints in opposite orders, so both are sequentially consistent, which
    // costs nothing beside the exchange on x86-64.
    std::array<std::atomic<std::uint64_t>, hint_words> hints_ = {};
};

// Copying a smaller block is faster than moving its pages.
inline constexpr std::size_t min_moved_bytes = std::size_t{1} << 20;

/// One pool's blocks of whole pages: the large-block cache in front of the page heap. Thread-safe.
class LargeBlocks {
public:
    LargeBlocks(PageHeap& heap, statistics::PoolTotals& totals) noexcept
        : heap_(heap),
          map_(heap.space().map()),
          in_use_(PageEntry(nullptr, heap.pool_number(), PageKind::large_in_use)),
          cached_(PageEntry(nullptr, heap.pool_number(), PageKind::large_cached)),
          noted_(PageEntry(nullptr, heap.pool_number(), PageKind::large_noted)),
          cache_(totals) {}

    // Above this size (512 KiB), a miss first empties the cache into the heap, so that free runs
    // join before one is split. The search costs little compared with touching the block. In
    // tools/photos a quarter less memory is committed than if only growth empties the cache, and
    // the block that is still in the processor's cache is reused (perf/large.cpp, 1 MiB).
    static constexpr PageCount join_above_pages = 128;

    struct Taken {
        Span* span = nullptr;
        bool from_cache = false;
    };
    /// The pages of a block for a request of `bytes` bytes, unless it is allocated tightly: the
    /// needed pages, rounded up to the next size (large_sizes.hpp).
    static PageCount pages_of(std::size_t bytes) noexcept { return round_large(pages_for(bytes)); }
    static PageCount pages_for(std::size_t bytes) noexcept {
        return static_cast<PageCount>((bytes + page_bytes - 1) >> page_shift);
    }
    /// Takes a block of exactly `pages` pages from the cache that all threads share. Returns
    /// nullptr if there is none.
    Span* take_cached(PageCount pages) noexcept {
        Span* const span = cache_.take(pages);
        if (span != nullptr) mark(*span, in_use_);
        return span;
    }
    /// Allocates a block from the cache or the heap. `alignment` is in bytes, a power of two.
    /// Before the heap grows, the cache is emptied into it. The span is nullptr if that is refused.
    Taken allocate(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
        const PageCount pages = pages_of(bytes);
        if (alignment <= page_bytes) [[likely]] {
            if (Span* const span = take_cached(pages)) return {span, true};
        }
        if (pages > join_above_pages) empty_cache(path);
        PageRequest request = request_for(pages, alignment);
        request.may_grow = false;
        Span* span = heap_.allocate(request, path);
        if (span == nullptr) {
            empty_cache(path);
            request.may_grow = true;
            span = heap_.allocate(request, path);
        }
        return {span, false};
    }
    /// Allocates a block without rounding up its pages, for requests near a limit. Returns nullptr
    /// if that is refused.
    Span* allocate_tightly(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
        return heap_.allocate(request_for(pages_for(bytes), alignment), path);
    }
    void free(Span& span, Changes& changes) noexcept {
        if (may_wait(span)) {
            begin_wait_uncounted(span);
            if (cache_.keep(span)) return;
        }
        heap_.free(span, changes);
    }
    /// Returns the block in use that begins at `p`, or nullptr. Takes no lock.
    Span* find_in_use(const void* p) const noexcept { return find(p, in_use_); }
    /// Returns the block in use that begins at `p` and whose free a server notes, or nullptr. Takes
    /// no lock.
    Span* find_noted(const void* p) const noexcept { return find(p, noted_); }
    /// Marks a block in use as one whose free a server notes, or as another one. While it is
    /// noted, `find_in_use` does not find it, so its free takes the slow path.
    void set_noted(const Span& span, bool noted) noexcept { mark(span, noted ? noted_ : in_use_); }
    void* address_of(const Span& span) const noexcept { return map_.address_of(span.first_page); }
    /// With checks: ends the use of the block at `p`, whose page has this entry in the page map.
    /// Returns true exactly once for each use. Returns false if no block in use of at least
    /// `min_bytes` bytes begins at `p`, or if more than `max_requested` bytes were requested for
    /// it; the caller then reports the misuse.
    bool end_use(const void* p, PageEntry entry, std::size_t min_bytes,
                 std::size_t max_requested) noexcept {
        Span& span = *entry.span();
        const auto is_right = [&] {
            return heap_.space().address_of(span.first_page) == p && min_bytes <= span.bytes();
        };
        if (!is_right() || span.requested_bytes.load(std::memory_order_relaxed) > max_requested) {
            return false;
        }
        // If several threads free one block at the same time, the exchange lets only one of them
        // find it in use.
        if (span.requested_bytes.exchange(0, std::memory_order_acq_rel) == 0) return false;
        // A block in use keeps its span. If `p` was not in use, the span may have been reused for
        // another block while it was read. These comparisons detect that.
        return heap_.space().map().at(p).word() == entry.word() && is_right();
    }

    /// Grows a block in place to at least `bytes` bytes. Returns false, and changes nothing, if the
    /// memory behind it is in use or cannot be committed. REQUIRES: the block is smaller.
    bool extend(Span& span, std::size_t bytes, SlowPath& path) noexcept {
        const PageCount pages = pages_of(bytes);
        if (heap_.extend(span, pages, path)) return true;
        return waits_behind(span) && empty_cache(path) != 0 && heap_.extend(span, pages, path);
    }
    /// Shortens a block in place to the pages of `bytes` bytes. Returns false, and changes nothing,
    /// if these are not fewer or there is no memory for a record.
    bool shorten(Span& span, std::size_t bytes) noexcept {
        const PageCount pages = pages_of(bytes);
        return pages < span.pages && heap_.shorten(span, pages);
    }
    /// Returns whether the span behind the block is a free large block that is kept here or by a
    /// thread. Such a block can join the free extents once it is given to the heap.
    bool waits_behind(const Span& span) const noexcept {
        if (span.end_page() >= heap_.space().map().page_count()) return false;
        const PageEntry entry = heap_.space().map().at(span.end_page());
        if (entry.kind() != PageKind::large_cached || entry.pool_number() != heap_.pool_number())
            return false;
        const AddressSpace& space = heap_.space();
        return space.shard_of(span.first_page) == space.shard_of(span.end_page());
    }
    /// Moves the block's pages to a run with room for `bytes` bytes, if that costs less than a
    /// copy. Returns the result of PageHeap::move, or nullptr.
    Span* move(Span& span, std::size_t bytes, SlowPath& path) noexcept {
        if (span.bytes() < min_moved_bytes) return nullptr;
        return heap_.move(span, pages_of(bytes), path);
    }

    // Free blocks that a thread's cache keeps (that *wait* there). If retention is limited, they
    // count as free memory.
    /// Returns whether the block may be kept: retention allows it, and its size is a rounded one.
    bool may_wait(const Span& span) const noexcept {
        return is_rounded_large(span.pages) && heap_.kept().may_keep(span.bytes());
    }
    void begin_wait(Span& span) noexcept {
        heap_.kept().note_elsewhere(static_cast<std::ptrdiff_t>(span.bytes()));
        begin_wait_uncounted(span);
    }
    /// Returns whether retention is unlimited, so that kept blocks need not be counted.
    bool may_wait_uncounted() const noexcept { return heap_.kept().is_unlimited(); }
    void begin_wait_uncounted(Span& span) noexcept {
        span.period = heap_.kept().period();
        span.clean = false;
        mark(span, cached_);
    }
    void end_wait(Span& span) noexcept {
        heap_.kept().note_elsewhere(-static_cast<std::ptrdiff_t>(span.bytes()));
        mark(span, in_use_);
    }
    void free_waiting(Span& span, Changes& changes) noexcept {
        heap_.kept().note_elsewhere(-static_cast<std::ptrdiff_t>(span.bytes()));
        heap_.free(span, changes);
    }

    /// Moves all cached blocks to the heap. Returns their bytes.
    std::size_t empty_cache(Changes& changes) noexcept {
        return empty_cache_before(UINT32_MAX, changes);
    }
    /// Moves the cached blocks that were freed before the last whole period to the heap. Returns
    /// their bytes.
    std::size_t empty_cache_of_unneeded(Changes& changes) noexcept {
        return empty_cache_before(heap_.kept().period() - 1, changes);
    }

private:
    Span* find(const void* p, PageEntry kind) const noexcept {
        const PageEntry entry = map_.at(p);
        Span* const span = entry.span();
        if (entry.word() != kind.with(span).word()) return nullptr;
        return address_of(*span) == p ? span : nullptr;
    }
    PageRequest request_for(PageCount pages, std::size_t alignment) const noexcept {
        const std::size_t bytes = pages * page_bytes;
        return {.pages = pages,
                .alignment = static_cast<PageCount>(std::max(alignment, page_bytes) / page_bytes),
                .huge = bytes >= platform::huge_page_bytes &&
                        heap_.options().huge_pages >= HugePages::automatic};
    }
    std::size_t empty_cache_before(std::uint32_t period, Changes& changes) noexcept {
        std::size_t bytes = 0;
        cache_.empty(period, [&](Span& span) {
            bytes += span.bytes();
            heap_.free(span, changes);
        });
        return bytes;
    }
    // The entry of the first page distinguishes a block in use from a freed one.
    void mark(const Span& span, PageEntry kind) noexcept {
        map_.set_first(span.first_page, kind.with(&span));
    }

    PageHeap& heap_;
    PageMap& map_;
    // The pool's entries for the kinds, without a span.
    const PageEntry in_use_;
    const PageEntry cached_;
    const PageEntry noted_;
    LargeCache cache_;
};

}  // namespace tensorpool::pages
