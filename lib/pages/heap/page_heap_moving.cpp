// Blocks that grow in place or by moving their pages.

#include <algorithm>

#include "pages/heap/heap_shard.hpp"

namespace tensorpool::pages {

bool HeapShard::extend(Span& span, PageCount pages, MayCommit may_commit, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    const PageCount more = pages - span.pages;
    Span* const behind = hot_behind(span, more, may_commit, path);
    if (behind != nullptr) join_front(span, *behind, more);
    return behind != nullptr;
}

// Returns the hot extent behind the span if it has at least `pages` pages, after committing what is
// missing. Returns nullptr otherwise.
Span* HeapShard::hot_behind(const Span& span, PageCount pages, MayCommit may_commit,
                            SlowPath& path) noexcept {
    Span* const hot = neighbour(span.end_page(), PageKind::extent_hot);
    const PageCount hot_pages = hot == nullptr ? 0 : hot->pages;
    if (hot_pages >= pages) return hot;
    if (may_commit == MayCommit::no) return nullptr;
    const PageCount missing = pages - hot_pages;
    Span* const cold = neighbour(span.end_page() + hot_pages, PageKind::extent_cold);
    if (cold == nullptr || cold->pages < missing) return nullptr;
    if (!commit_at({cold, cold->first_page, missing}, Surplus::no, path)) return nullptr;
    return neighbour(span.end_page(), PageKind::extent_hot);
}

void HeapShard::join_front(Span& span, Span& extent, PageCount pages) noexcept {
    remove_extent(extent);
    space_.map().clear_last(span);
    span.pages += pages;
    span.clean = false;
    span.huge = span.huge && extent.huge;
    extent.first_page += pages;
    extent.set_untouched_end(std::min(extent.untouched_end(), extent.pages - pages));
    extent.pages -= pages;
    if (extent.pages != 0) {
        add_extent(extent, PageKind::extent_hot);
    } else {
        spans_.destroy(&extent);
    }
    mark_in_use(span, span.kind);
    count_free();
}

Span* HeapShard::move(Span& span, PageCount pages, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    const PageRun from{span.first_page, span.pages};
    // A NUMA policy neither moves with the pages nor stays at the old addresses.
    if (common_.options.numa.placement != NumaPolicy::Placement::system) return nullptr;
    if (!span.is_of_whole_pages() || !space_.may_move(from)) return nullptr;
    const std::size_t more = (pages - from.count) * page_bytes;
    if (wanted_bytes({.pages = pages - from.count}, Surplus::no, path) == 0) return nullptr;
    const Position to = target_of_move(from, pages);
    if (to.cold == nullptr) return nullptr;
    const std::size_t grown = common_.account.take_and_get(
        more, more, common_.options.growth.fraction, page_bytes, path.budget, [&](std::size_t) {
            return commit_alone(*to.cold, {to.first, pages});
        });
    if (grown == 0) return nullptr;
    const AddressSpace::Moved moved = space_.move(from, to.first);
    if (moved == AddressSpace::Moved::none) {
        // It was never touched, so it stays clean.
        add_extent(*to.cold, PageKind::extent_cold);
        common_.account.give_back(more);
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
    left.touched = !left.clean;
    left.set_untouched_end(0);
    left.zeroed = false;
    return &left;
}

void HeapShard::take_left(Span& left) noexcept {
    const std::lock_guard guard(mutex_);
    add_extent(left, PageKind::extent_cold);
}

// Returns a position in one of the largest cold extents, with room to grow behind it, at the same
// offset in a huge page as now. The system then moves page tables instead of single entries.
HeapShard::Position HeapShard::target_of_move(PageRun from, PageCount pages) noexcept {
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
