#include "pages/heap/growth_position.hpp"

#include <algorithm>

namespace tensorpool::pages {
namespace {

// Returns a position of 0 pages if the request does not fit there.
GrowthPosition position_beside(Extents& extents, Span& cold, const PageRequest& request) noexcept {
    const Span* const left = extents.find(cold.first_page - 1, PageKind::extent_hot);
    const Span* const right = extents.find(cold.end_page(), PageKind::extent_hot);
    Span joined;
    joined.first_page = left == nullptr ? cold.first_page : left->first_page;
    joined.pages = (right == nullptr ? cold.end_page() : right->end_page()) - joined.first_page;
    const PageNumber begin = ExtentBins::position_in(joined, request.pages, request.alignment);
    const PageNumber first = std::max(begin, cold.first_page);
    const PageNumber end = std::min(begin + request.pages, cold.end_page());
    return {&cold, first, begin == joined.end_page() ? 0 : end - first};
}

}  // namespace

// Candidates are the cold extent that fits best and the cold neighbours of the largest hot extents;
// adjacent hot extents reduce the number of pages.
GrowthPosition cheapest_position(Extents& extents, const PageRequest& request) noexcept {
    constexpr unsigned max_looks = 16;
    GrowthPosition best;
    const auto consider = [&](Span* cold) {
        if (cold == nullptr) return;
        const GrowthPosition position = position_beside(extents, *cold, request);
        if (position.pages == 0) return;
        if (best.cold == nullptr || position.pages < best.pages) best = position;
    };
    consider(extents.cold().find(request.pages, request.alignment));
    extents.hot().for_the_largest(max_looks, [&](Span& hot) {
        consider(extents.find(hot.first_page - 1, PageKind::extent_cold));
        consider(extents.find(hot.end_page(), PageKind::extent_cold));
    });
    return best;
}

GrowthPosition position_for_move(Span& cold, PageRun from, PageCount pages) noexcept {
    const PageCount spare = cold.pages - room_for_move(pages);
    const PageNumber earliest = cold.first_page + (spare > 2 * pages ? spare / 2 : 0);
    return {&cold, earliest + (from.first - earliest) % granule_pages, pages};
}

}  // namespace tensorpool::pages
