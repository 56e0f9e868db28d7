// Blocks that grow where they are, or whose pages move to where there is room.

#include <algorithm>

#include "pages/page_heap.hpp"

namespace tensorpool::pages {

bool PageHeap::extend(Span& span, PageCount pages, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    const PageCount more = pages - span.pages;
    Span* const behind = commit_behind(span, more, path);
    if (behind != nullptr) join_front(span, *behind, more);
    return behind != nullptr;
}

// The hot extent behind the span, where it has so many pages once what is missing is committed.
Span* PageHeap::commit_behind(const Span& span, PageCount pages, SlowPath& path) noexcept {
    Span* const hot = neighbour(span.end_page(), PageKind::extent_hot);
    const PageCount hot_pages = hot == nullptr ? 0 : hot->pages;
    if (hot_pages >= pages) return hot;
    const PageCount missing = pages - hot_pages;
    Span* const cold = neighbour(span.end_page() + hot_pages, PageKind::extent_cold);
    if (cold == nullptr || cold->pages < missing) return nullptr;
    if (!commit_place({cold, cold->first_page, missing}, Surplus::no, path)) return nullptr;
    return neighbour(span.end_page(), PageKind::extent_hot);
}

void PageHeap::join_front(Span& span, Span& extent, PageCount pages) noexcept {
    remove_extent(extent);
    space_.map().clear_last(span);
    span.pages += pages;
    span.clean = false;
    span.huge = span.huge && extent.huge;
    extent.first_page += pages;
    extent.pages -= pages;
    if (extent.pages != 0) {
        add_extent(extent, PageKind::extent_hot);
    } else {
        spans_.destroy(&extent);
    }
    mark_in_use(span, span.kind);
    count_free();
}

Span* PageHeap::move(Span& span, PageCount pages, SlowPath& path) noexcept {
    const std::size_t lent = lent_bytes();
    Span* const left = try_move(span, pages, path);
    if (left == nullptr && lent_bytes() > lent) lend_back();
    return left;
}

Span* PageHeap::try_move(Span& span, PageCount pages, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    const PageRun from{span.first_page, span.pages};
    // What is committed already serves first: the caller copies to it.
    if (find_hot({.pages = pages}) != nullptr) return nullptr;
    // A policy does not go along, nor stay where the pages were.
    if (options_.numa.placement != NumaPolicy::Placement::system) return nullptr;
    if (!span.is_of_whole_pages() || !space_.may_move(from)) return nullptr;
    const std::size_t more = (pages - from.count) * page_bytes;
    if (wanted_bytes({.pages = pages - from.count}, Surplus::no, path) == 0) return nullptr;
    const Place to = place_to_move_to(from, pages);
    if (to.cold == nullptr) return nullptr;
    const std::size_t grown =
        budget_.take_and_get(more, more, options_.growth.fraction, page_bytes, [&](std::size_t) {
            return commit_alone(*to.cold, {to.first, pages});
        });
    if (grown == 0) return nullptr;
    const AddressSpace::Moved moved = space_.move(from, to.first);
    if (moved == AddressSpace::Moved::none) {
        // Never touched, so it is clean as it is.
        add_extent(*to.cold, PageKind::extent_cold);
        budget_.give_back(more);
        return nullptr;
    }
    clear_marks(span);
    span.first_page = to.first;
    span.pages = pages;
    span.clean = false;
    span.huge = false;
    mark_in_use(span, span.kind);
    count_growth(more);
    path.grown += more;
    Span& left = *to.cold;
    left.first_page = from.first;
    left.pages = from.count;
    left.clean = moved == AddressSpace::Moved::all;
    return &left;
}

void PageHeap::take_left(Span& left) noexcept {
    const std::lock_guard guard(mutex_);
    add_extent(left, PageKind::extent_cold);
}

// In one of the largest cold extents, with room to grow behind it, and as far from the beginning of
// a huge page as it is now: then the system moves its tables, not each page's entry.
PageHeap::Place PageHeap::place_to_move_to(PageRun from, PageCount pages) noexcept {
    const PageCount needed = pages + granule_pages - 1;
    Span* cold = cold_.largest();
    if (cold == nullptr || cold->pages < needed) {
        Refusal ignored;
        if (!borrow(needed, 1, ignored)) return {};
        cold = cold_.largest();
    }
    const PageCount spare = cold->pages - needed;
    const PageNumber earliest = cold->first_page + (spare > 2 * pages ? spare / 2 : 0);
    const PageNumber first = earliest + (from.first - earliest) % granule_pages;
    return {cold, first, pages};
}

}  // namespace tensorpool::pages
