#include <algorithm>

#include "base/alignment.hpp"
#include "pages/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

std::size_t PageHeap::trim(Changes& changes) noexcept {
    {
        const std::lock_guard guard(mutex_);
        floor_ = 0;
    }
    const std::size_t bytes = shed(SIZE_MAX, changes);
    lend_back();
    return bytes;
}

void PageHeap::give_back(std::size_t bytes, Changes& changes) noexcept {
    SpanList leaving;
    {
        // Both steps under one lock: if two threads give back at once, the second one sees the
        // capacity that the first one left.
        const std::lock_guard guard(mutex_);
        collect(leaving, std::min(bytes, capacity() - std::min(capacity(), floor_)));
        count_free();
    }
    if (!leaving.empty()) drop(leaving, changes);
}

bool PageHeap::keep_to_retention(Changes& changes) noexcept {
    const std::uint64_t now = options_.clock_ns();
    std::size_t unneeded = 0;
    {
        const std::lock_guard guard(mutex_);
        if (!retention_.ended(now)) return false;
        unneeded = retention_.unneeded();
        retention_.begin(now, period_ns(), hot_.total_pages() * page_bytes - unneeded);
    }
    if (unneeded != 0) give_back(unneeded, changes);
    // If the address space is limited, other code in the process may need the addresses.
    if (platform::available_address_space() != SIZE_MAX) lend_back();
    return true;
}

std::uint64_t PageHeap::period_ns() const noexcept {
    const std::uint64_t period = std::uint64_t{options_.retain.milliseconds} * 1'000'000;
    return period != 0 && budget_.short_of_memory() ? period / 10 : period;
}

std::size_t PageHeap::shed(std::size_t bytes, Changes& changes) noexcept {
    SpanList leaving;
    {
        const std::lock_guard guard(mutex_);
        collect(leaving, bytes);
        count_free();
    }
    return leaving.empty() ? 0 : drop(leaving, changes);
}

// Returns the smallest extent that holds this many pages, or else the largest. If a little were
// taken from a large extent, the next large request would have to grow elsewhere.
Span* PageHeap::extent_to_give(std::size_t pages) noexcept {
    if (pages > hot_.total_pages()) return hot_.largest();
    Span* const enough = hot_.find(static_cast<PageCount>(pages), 1);
    return enough != nullptr ? enough : hot_.largest();
}

// Takes hot extents out of the heap, the last one in part, and reduces the capacity.
void PageHeap::collect(SpanList& leaving, std::size_t bytes) noexcept {
    std::size_t collected = 0;
    while (collected < bytes) {
        const std::size_t wanted = base::ceil_divide(bytes - collected, page_bytes);
        Span* extent = extent_to_give(wanted);
        if (extent == nullptr) return;
        remove_extent(*extent);
        if (wanted < extent->pages) extent = keep_front(*extent, static_cast<PageCount>(wanted));
        leaving.push_back(*extent);
        collected += extent->bytes();
        totals_.capacity_bytes.store(capacity() - extent->bytes(), std::memory_order_relaxed);
    }
}

// Puts all but the last `pages` pages of a taken extent back. Returns those pages, or the whole
// extent if there is no memory for a record to split it.
Span* PageHeap::keep_front(Span& extent, PageCount pages) noexcept {
    Span* const back = spans_.make();
    if (back == nullptr) return &extent;
    back->first_page = extent.end_page() - pages;
    back->pages = pages;
    extent.pages -= pages;
    add_extent(extent, PageKind::extent_hot);
    return back;
}

std::size_t PageHeap::drop(SpanList& leaving, Changes& changes) noexcept {
    std::size_t dropped = 0;
    while (!leaving.empty()) {
        Span& extent = leaving.front();
        leaving.pop_front();
        const std::size_t bytes = extent.bytes();
        const bool gone = space_.decommit({extent.first_page, extent.pages});
        const std::lock_guard guard(mutex_);
        extent.clean = gone && extent.is_of_whole_pages();
        add_extent(extent, gone ? PageKind::extent_cold : PageKind::extent_hot);
        if (!gone) {
            detail::add(totals_.capacity_bytes, bytes);
            count_free();
            continue;
        }
        budget_.give_back(bytes);
        dropped += bytes;
        detail::add(totals_.give_backs, 1);
        detail::add(totals_.given_back_bytes, bytes);
    }
    changes.given_back += dropped;
    return dropped;
}

}  // namespace tensorpool::pages
