#include "pages/heap/extents.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>

namespace tensorpool::pages {
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

void Extents::mark_in_use(Span& span, PageKind kind) noexcept {
    span.kind = kind;
    set_entries(span, PageEntry(&span, pool_number_, kind));
}

void Extents::clear_entries(Span& span) noexcept {
    set_entries(span, PageEntry());
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

void Extents::note_touched() noexcept {
    hot_.for_each([](Span& extent) {
        extent.touched = true;
        extent.set_untouched_end(0);
    });
    untouched_pages_ = 0;
}

}  // namespace tensorpool::pages
