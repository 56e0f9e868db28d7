#pragma once

#include <cstddef>

#include "pages/large_cache.hpp"
#include "pages/page_heap.hpp"

namespace tensorpool::pages {

/// One pool's blocks of whole pages: the large-block cache before the page heap. Thread-safe.
class LargeBlocks {
public:
    LargeBlocks(PageHeap& heap, statistics::PoolTotals& totals) noexcept
        : heap_(heap),
          map_(heap.space().map()),
          in_use_(PageEntry(nullptr, heap.pool_number(), PageKind::large_in_use)),
          cached_(PageEntry(nullptr, heap.pool_number(), PageKind::large_cached)),
          cache_(totals) {}

    // Beside touching such a block the search costs nothing: free runs are joined before one is
    // split. In tools/photos a quarter less memory is committed than where only a growth empties
    // the cache; and the block that is still in the processor's cache is used again
    // (perf/large.cpp, 1 MiB).
    static constexpr PageCount join_above_pages = 128;

    struct Taken {
        Span* span = nullptr;
        bool from_cache = false;
    };
    /// The pages that a block of so many bytes gets, where it is not allocated tightly.
    static PageCount pages_of(std::size_t bytes) noexcept { return round_large(pages_for(bytes)); }
    static PageCount pages_for(std::size_t bytes) noexcept {
        return static_cast<PageCount>((bytes + page_bytes - 1) >> page_shift);
    }
    /// One that waits in the cache of all threads, or nullptr.
    Span* take_cached(PageCount pages) noexcept;
    /// `alignment` in bytes, a power of two. Before the heap grows, the cache is emptied into it.
    Taken allocate(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept;
    /// A block with no more pages than the bytes need: when a limit is near.
    Span* allocate_tightly(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept;
    void free(Span& span, Changes& changes) noexcept;
    /// The block in use that begins at `p`, or nullptr. Without a lock.
    Span* find_in_use(const void* p) const noexcept {
        const PageEntry entry = map_.at(p);
        Span* const span = entry.span();
        if (entry.word() != in_use_.with(*span).word()) return nullptr;
        return address_of(*span) == p ? span : nullptr;
    }
    void* address_of(const Span& span) const noexcept { return map_.address_of(span.first_page); }
    /// With checks: true once for each use, which has ended then. False, where nothing but a stop
    /// is left, when `p`, with this entry in the page map, does not begin a block in use of
    /// `min_bytes`, or more than `max_requested` was asked for.
    bool end_use(const void* p, PageEntry entry, std::size_t min_bytes,
                 std::size_t max_requested) noexcept;

    /// Makes a block long enough for `bytes`, which it is not yet, where it is. False, and it is as
    /// it was, where what lies behind it is in use or cannot be had.
    bool extend(Span& span, std::size_t bytes, SlowPath& path) noexcept;
    /// Whether what lies behind the block is free and waits, here or with a thread: then it joins
    /// what is free once it is given to the heap.
    bool waits_behind(const Span& span) const noexcept;
    /// Moves the block's pages to where there is room for `bytes`, if that costs less than a copy.
    /// Returns what PageHeap::move does.
    Span* move(Span& span, std::size_t bytes, SlowPath& path) noexcept;

    // Blocks that wait in a thread's cache. They count as kept where retention limits that.
    /// Not where retention allows no more, nor of a size that is no rounded one.
    bool may_wait(const Span& span) const noexcept {
        return is_rounded_large(span.pages) && heap_.may_keep_elsewhere(span.bytes());
    }
    void begin_wait(Span& span) noexcept {
        heap_.note_kept_elsewhere(static_cast<std::ptrdiff_t>(span.bytes()));
        begin_wait_uncounted(span);
    }
    /// Whether retention limits nothing, and what waits is not counted.
    bool may_wait_uncounted() const noexcept { return heap_.options().retain.bytes == SIZE_MAX; }
    void begin_wait_uncounted(Span& span) noexcept {
        span.period = heap_.period();
        span.clean = false;
        mark(span, cached_);
    }
    void end_wait(Span& span) noexcept {
        heap_.note_kept_elsewhere(-static_cast<std::ptrdiff_t>(span.bytes()));
        mark(span, in_use_);
    }
    void free_waiting(Span& span, Changes& changes) noexcept;

    /// Into the heap: everything, or what was not needed in the last whole period. Bytes moved.
    std::size_t empty_cache(Changes& changes) noexcept;
    std::size_t empty_cache_of_unneeded(Changes& changes) noexcept;

private:
    PageRequest request_for(PageCount pages, std::size_t alignment) const noexcept;
    std::size_t empty_cache_before(std::uint32_t period, Changes& changes) noexcept;
    // The first page's entry tells a block that is in use from one that was freed.
    void mark(const Span& span, PageEntry kind) noexcept {
        map_.set_first(span.first_page, kind.with(span));
    }

    PageHeap& heap_;
    PageMap& map_;
    // The pool's entries of no span.
    const PageEntry in_use_;
    const PageEntry cached_;
    LargeCache cache_;
};

}  // namespace tensorpool::pages
