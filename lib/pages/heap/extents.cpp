#include "pages/heap/extents.hpp"

#include <initializer_list>

namespace tensorpool::pages {
namespace {

// A bin spans an eighth of a doubling, so each of its extents is a good fit. Comparing more of them
// than this costs more than it saves.
constexpr unsigned looks_per_bin = 8;

// Usually only a few extents can hold a large block. If there are many, any of them is good enough.
constexpr unsigned looks_for_lowest = 64;

}  // namespace

void ExtentBins::insert(Span& extent) noexcept {
    static_assert(bin_of(~PageCount{0}) < bin_count);
    const unsigned bin = bin_of(extent.pages);
    bins_[bin].push_front(extent);
    used_[bin / 64] |= std::uint64_t{1} << bin % 64;
    total_pages_ += extent.pages;
}

Span* ExtentBins::find(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept {
    for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
        if (Span* const found = best_of(bin, pages, alignment, max_misfits)) return found;
    }
    return nullptr;
}

Span* ExtentBins::find_lowest(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept {
    Span* lowest = nullptr;
    unsigned looks = 0;
    for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
        unsigned misfits = 0;
        for (Span& extent : bins_[bin]) {
            if (position_in(extent, pages, alignment) == extent.end_page()) {
                if (++misfits == max_misfits) break;
                continue;
            }
            if (lowest == nullptr || extent.first_page < lowest->first_page) lowest = &extent;
            if (++looks == looks_for_lowest) return lowest;
        }
    }
    return lowest;
}

std::span<const PageRun> ExtentBins::lowest_from(PageNumber from,
                                                 std::span<PageRun> room) noexcept {
    const auto is_lower = [](const PageRun& a, const PageRun& b) { return a.first < b.first; };
    std::size_t count = 0;
    for_each([&](const Span& extent) {
        if (extent.first_page < from) return;
        const PageRun run{extent.first_page, extent.pages};
        // `room` is a heap with the highest address in front.
        if (count < room.size()) {
            room[count++] = run;
            std::ranges::push_heap(room.first(count), is_lower);
        } else if (is_lower(run, room.front())) {
            std::ranges::pop_heap(room, is_lower);
            room.back() = run;
            std::ranges::push_heap(room, is_lower);
        }
    });
    std::ranges::sort_heap(room.first(count), is_lower);
    return room.first(count);
}

Span* ExtentBins::best_of(unsigned bin, PageCount pages, PageCount alignment,
                          unsigned max_misfits) noexcept {
    Span* best = nullptr;
    unsigned fits = 0;
    unsigned misfits = 0;
    for (Span& extent : bins_[bin]) {
        if (position_in(extent, pages, alignment) == extent.end_page()) {
            if (++misfits == max_misfits) break;
            continue;
        }
        if (best == nullptr || extent.pages < best->pages) best = &extent;
        if (best->pages == pages || ++fits == looks_per_bin) break;
    }
    return best;
}

unsigned ExtentBins::next_used(unsigned bin) const noexcept {
    for (unsigned word = bin / 64; word < used_.size(); ++word) {
        const std::uint64_t above =
            word == bin / 64 ? ~std::uint64_t{0} << bin % 64 : ~std::uint64_t{0};
        const std::uint64_t bits = used_[word] & above;
        if (bits != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
    }
    return bin_count;
}

namespace {

/// Adds the pages of an adjacent run to a run.
void join(Span& run, const Span& other) noexcept {
    const bool is_left = other.first_page < run.first_page;
    const Span& left = is_left ? other : run;
    const Span& right = is_left ? run : other;
    const PageCount untouched_end =
        right.untouched_end() + (right.untouched_end() == right.pages ? left.untouched_end() : 0);
    run.first_page = left.first_page;
    run.pages += other.pages;
    run.join_content(other);
    run.set_untouched_end(untouched_end);
}

PageRun granules_in(const Span& extent) noexcept {
    const PageNumber first = (extent.first_page + granule_pages - 1) / granule_pages;
    const PageNumber end = extent.end_page() / granule_pages;
    return end > first ? PageRun{first * granule_pages, (end - first) * granule_pages} : PageRun{};
}

}  // namespace

// If large blocks come and go at the lowest addresses, the free memory at the highest addresses
// stays contiguous. On recorded calls (perf/workloads) that takes up to a fifteenth less memory
// than best fit, and never more. For small runs, which fit anywhere, best fit takes less.
Span* Extents::find_hot(PageCount pages, PageCount alignment) noexcept {
    constexpr PageCount large_pages = 128;
    return pages > large_pages ? hot_.find_lowest(pages, alignment) : hot_.find(pages, alignment);
}

Span* Extents::find(PageNumber page, PageKind kind) const noexcept {
    // Page 0 has no left neighbour: the number of that wraps around to one beyond all pages.
    if (page >= space_.map().page_count()) return nullptr;
    const PageEntry entry = space_.map().at(page);
    if (entry.kind() != kind || entry.pool_number() != pool_number_) return nullptr;
    // The record of another shard's extent must not be read.
    return space_.is_lent_to(pool_number_, shard_, page) ? entry.span() : nullptr;
}

void Extents::add(Span& run, PageKind kind) noexcept {
    run.kind = kind;
    for (Span* const other : {find(run.first_page - 1, kind), find(run.end_page(), kind)}) {
        if (other == nullptr) continue;
        remove(*other);
        join(run, *other);
        records_.destroy(other);
    }
    space_.map().set_ends(run, PageEntry(&run, pool_number_, kind));
    if (kind == PageKind::extent_hot) {
        hot_.insert(run);
        untouched_pages_ += run.untouched_end();
    } else {
        cold_.insert(run);
    }
}

void Extents::remove(Span& extent) noexcept {
    space_.map().set_ends(extent, PageEntry());
    if (extent.kind == PageKind::extent_hot) {
        hot_.remove(extent);
        untouched_pages_ -= extent.untouched_end();
    } else {
        cold_.remove(extent);
    }
}

bool Extents::isolate(Span& extent, PageRun run) noexcept {
    const PageCount before = run.first - extent.first_page;
    const PageCount after = extent.pages - before - run.count;
    Span* const front = before == 0 ? nullptr : records_.make();
    Span* const back = after == 0 ? nullptr : records_.make();
    if ((before != 0 && front == nullptr) || (after != 0 && back == nullptr)) {
        if (front != nullptr) records_.destroy(front);
        if (back != nullptr) records_.destroy(back);
        return false;
    }
    remove(extent);
    const PageNumber untouched = extent.end_page() - extent.untouched_end();
    const auto reduce = [&](Span& part, PageNumber first, PageCount pages) {
        part.first_page = first;
        part.pages = pages;
        part.set_untouched_end(first + pages - std::clamp(untouched, first, first + pages));
    };
    const auto keep = [&](Span* rest, PageNumber first, PageCount pages) {
        if (rest == nullptr) return;
        rest->take_content(extent);
        reduce(*rest, first, pages);
        add(*rest, extent.kind);
    };
    keep(front, extent.first_page, before);
    keep(back, run.first + run.count, after);
    reduce(extent, run.first, run.count);
    return true;
}

// Extents are visited from the largest size down, a limited number at a time. Extents without a
// whole granule may fill that number and hide others of their size, which then stay.
std::size_t Extents::isolate_cold_granules(SpanList& isolated) noexcept {
    std::size_t pages = 0;
    std::array<Span*, 64> found;
    for (;;) {
        unsigned count = 0;
        cold_.for_the_largest(found.size(), [&](Span& extent) {
            if (granules_in(extent).count != 0) found[count++] = &extent;
        });
        if (count == 0) return pages;
        for (unsigned i = 0; i != count; ++i) {
            Span& extent = *found[i];
            if (!isolate(extent, granules_in(extent))) return pages;
            isolated.push_back(extent);
            pages += extent.pages;
        }
    }
}

void Extents::set_entries(const Span& span, PageEntry entry) noexcept {
    const PageEntry own(&span, pool_number_, span.kind);
    if (own.is_bucket() || own.is_marked())
        return space_.map().set_all({span.first_page, span.pages}, entry);
    space_.map().set_ends(span, entry);
    space_.map().set_granules(span, entry);
}

void Extents::lengthen(Span& span, Span& behind, PageCount pages) noexcept {
    remove(behind);
    space_.map().clear_last(span);
    span.pages += pages;
    span.clean = false;
    span.huge = span.huge && behind.huge;
    behind.first_page += pages;
    behind.set_untouched_end(std::min(behind.untouched_end(), behind.pages - pages));
    behind.pages -= pages;
    if (behind.pages != 0) {
        add(behind, PageKind::extent_hot);
    } else {
        records_.destroy(&behind);
    }
    mark_in_use(span, span.kind);
}

bool Extents::shorten(Span& span, PageCount pages) noexcept {
    Span* const rest = records_.make();
    if (rest == nullptr) return false;
    rest->first_page = span.first_page + pages;
    rest->pages = span.pages - pages;
    rest->huge = span.huge;
    clear_entries(*rest);
    span.pages = pages;
    mark_in_use(span, span.kind);
    add(*rest, PageKind::extent_hot);
    return true;
}

void Extents::note_touched() noexcept {
    hot_.for_each([](Span& extent) {
        extent.touched = true;
        extent.set_untouched_end(0);
    });
    untouched_pages_ = 0;
}

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
