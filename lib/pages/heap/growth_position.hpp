#pragma once

#include "pages/heap/extents.hpp"
#include "pages/heap/page_request.hpp"

namespace tensorpool::pages {

/// Where a shard can grow: these pages of a cold extent.
struct GrowthPosition {
    Span* cold = nullptr;
    PageNumber first = 0;
    PageCount pages = 0;

    PageRun run() const noexcept { return {first, pages}; }
};

/// Returns the position at which the fewest pages have to be committed for a request. If there is
/// none, its extent is nullptr. The caller holds the shard's lock.
GrowthPosition cheapest_position(Extents& extents, const PageRequest& request) noexcept;

/// Returns where a moved block of `pages` pages is to begin in a cold extent, which has at least
/// `room_for_move(pages)`: with room to grow behind it, and at the same offset in a huge page as
/// `from`. The system then moves page tables instead of single entries.
GrowthPosition position_for_move(Span& cold, PageRun from, PageCount pages) noexcept;
constexpr PageCount room_for_move(PageCount pages) noexcept {
    return pages + granule_pages - 1;
}

}  // namespace tensorpool::pages
