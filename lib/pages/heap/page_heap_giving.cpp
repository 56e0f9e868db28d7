#include <algorithm>

#include "base/alignment.hpp"
#include "pages/heap/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

std::size_t PageHeap::trim(Changes& changes) noexcept {
    {
        const std::lock_guard guard(common_.growth);
        common_.set_floor(0);
    }
    const std::size_t bytes = give_back(SIZE_MAX, Floor::ignored, changes);
    lend_back();
    return bytes;
}

void PageHeap::give_back(std::size_t bytes, Changes& changes) noexcept {
    give_back(bytes, Floor::kept, changes);
}

std::size_t PageHeap::give_back(std::size_t bytes, Floor floor, Changes& changes) noexcept {
    std::size_t given = 0;
    for_each_shard([&](HeapShard& shard) {
        if (bytes == 0) return;
        SpanList leaving;
        std::size_t collected = 0;
        if (floor == Floor::ignored) {
            collected = shard.collect(leaving, bytes);
        } else {
            // Both steps under one lock: if two threads give back at once, the second one sees the
            // capacity that the first one left.
            const std::lock_guard guard(common_.growth);
            const std::size_t now = capacity();
            const std::size_t above = now - std::min(now, common_.floor);
            collected = shard.collect(leaving, std::min(bytes, above));
        }
        bytes -= std::min(bytes, collected);
        given += shard.drop(leaving, changes);
    });
    return given;
}

// A shard that gets free memory in the meantime has it counted as offered, until it is used.
void PageHeap::offer_free() noexcept {
    std::size_t offered = 0;
    for_each_shard([&](HeapShard& shard) { offered += shard.offer_free(); });
    common_.offered.store(std::min(offered, common_.free_bytes()), std::memory_order_relaxed);
}

std::size_t PageHeap::unoffered_bytes() const noexcept {
    const std::size_t kept =
        common_.free_bytes() + common_.totals.large_cached_bytes.load(std::memory_order_relaxed);
    const std::size_t without = common_.offered.load(std::memory_order_relaxed) +
                                common_.totals.untouched_bytes.load(std::memory_order_relaxed);
    return kept - std::min(kept, without);
}

bool PageHeap::keep_to_retention(Changes& changes) noexcept {
    const std::uint64_t now = options().clock_ns();
    if (!common_.retention.ended(now)) return false;
    std::size_t unneeded = 0;
    {
        const std::lock_guard guard(common_.growth);
        if (!common_.retention.ended(now)) return false;  // another thread was first
        unneeded = common_.retention.unneeded();
        const std::size_t free_bytes = common_.free_bytes();
        common_.retention.begin(now, period_ns(), free_bytes - std::min(free_bytes, unneeded));
        // What another thread took in the meantime was compared with the previous minimum.
        common_.retention.saw_free(common_.free_bytes());
    }
    if (unneeded != 0) give_back(unneeded, changes);
    // If the address space is limited, other code in the process may need the addresses.
    if (platform::available_address_space() != SIZE_MAX) lend_back();
    return true;
}

std::uint64_t PageHeap::period_ns() const noexcept {
    const std::uint64_t period = std::uint64_t{options().retain.milliseconds} * 1'000'000;
    return period != 0 && common_.account.short_of_memory() ? period / 10 : period;
}

// Returns the smallest extent that holds this many pages, or else the largest. If a little were
// taken from a large extent, the next large request would have to grow elsewhere.
Span* HeapShard::extent_to_give(std::size_t pages) noexcept {
    if (pages > hot_.total_pages()) return hot_.largest();
    Span* const enough = hot_.find(static_cast<PageCount>(pages), 1);
    return enough != nullptr ? enough : hot_.largest();
}

// The last extent is taken in part.
std::size_t HeapShard::collect(SpanList& leaving, std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t collected = 0;
    while (collected < bytes) {
        const std::size_t wanted = base::ceil_divide(bytes - collected, page_bytes);
        Span* extent = extent_to_give(wanted);
        if (extent == nullptr) break;
        remove_extent(*extent);
        if (wanted < extent->pages) extent = keep_front(*extent, static_cast<PageCount>(wanted));
        leaving.push_back(*extent);
        collected += extent->bytes();
        common_.totals.capacity_bytes.fetch_sub(extent->bytes(), std::memory_order_relaxed);
    }
    if (collected != 0) count_free();
    return collected;
}

std::size_t HeapShard::offer_free() noexcept {
    const std::lock_guard guard(mutex_);
    std::size_t offered = 0;
    hot_.for_each([&](const Span& extent) {
        const PageCount touched = extent.pages - extent.untouched_end();
        if (touched != 0 && space_.offer({extent.first_page, touched})) {
            offered += touched * page_bytes;
        }
    });
    return offered;
}

// Puts all but the last `pages` pages of a taken extent back. Returns those pages, or the whole
// extent if there is no memory for a record to split it.
Span* HeapShard::keep_front(Span& extent, PageCount pages) noexcept {
    Span* const back = spans_.make();
    if (back == nullptr) return &extent;
    back->first_page = extent.end_page() - pages;
    back->pages = pages;
    const PageCount untouched_end = extent.untouched_end();
    extent.pages -= pages;
    extent.set_untouched_end(untouched_end - std::min(untouched_end, pages));
    add_extent(extent, PageKind::extent_hot);
    return back;
}

std::size_t HeapShard::drop(SpanList& leaving, Changes& changes) noexcept {
    statistics::PoolTotals& totals = common_.totals;
    std::size_t dropped = 0;
    while (!leaving.empty()) {
        Span& extent = leaving.front();
        leaving.pop_front();
        const std::size_t bytes = extent.bytes();
        const bool gone = space_.decommit({extent.first_page, extent.pages});
        const std::lock_guard guard(mutex_);
        extent.clean = gone && extent.is_of_whole_pages();
        extent.touched = !extent.clean;
        extent.set_untouched_end(0);
        add_extent(extent, gone ? PageKind::extent_cold : PageKind::extent_hot);
        if (!gone) {
            totals.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
            count_free();
            continue;
        }
        common_.account.give_back(bytes);
        dropped += bytes;
        totals.give_backs.fetch_add(1, std::memory_order_relaxed);
        totals.given_back_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    changes.given_back += dropped;
    return dropped;
}

}  // namespace tensorpool::pages
