// Fresh memory: which pages it asks for, and what touching it first costs.

#include <algorithm>

#include "base/alignment.hpp"
#include "pages/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

static_assert(granule_pages * page_bytes == platform::huge_page_bytes);

// Of memory that nobody has touched yet, once.
void PageHeap::ask_for_huge_pages(Span& extent) noexcept {
    if (!extent.clean || extent.huge) return;
    platform::prefer_huge_pages(space_.address_of(extent.first_page), extent.bytes());
    extent.huge = true;
}

// A granule asks when the span that begins its use is cut off: so what the last one cost counts.
// Before the first, the rest of the granule in which the extent begins asks for medium pages.
void PageHeap::ask_for_span(Span& extent, const PageRequest& request, SlowPath& path) noexcept {
    if (options_.folios == nullptr || options_.huge_pages != HugePages::buckets)
        return ask_for_huge_pages(extent);
    if (!extent.clean) return;
    const PageNumber first = ExtentBins::place_in(extent, request.pages, request.alignment);
    const auto granule = static_cast<PageNumber>(base::align_up(first, std::size_t{granule_pages}));
    if (granule < first + request.pages && granule + granule_pages <= extent.end_page()) {
        const Folio folio = options_.folios->for_granule();
        ask(folio, {granule, granule_pages});
        if (folio == Folio::huge) path.untried = {granule, granule_pages};
    } else if (!extent.huge) {
        ask(options_.folios->for_part(), {first, std::min(granule, extent.end_page()) - first});
    }
    extent.huge = true;
}

void PageHeap::ask(Folio folio, PageRun run) noexcept {
    char* const begin = space_.address_of(run.first);
    const std::size_t bytes = run.count * page_bytes;
    if (folio == Folio::huge) platform::prefer_huge_pages(begin, bytes);
    if (folio == Folio::medium) platform::prefer_medium_pages(begin, bytes);
}

void PageHeap::try_huge_page(const SlowPath& path) noexcept {
    const PageRun run = path.untried;
    if (run.count == 0) return;
    const Touching touching(*this);
    // Others may have freed it meanwhile, and its addresses may have been lent back.
    const PageEntry entry = space_.map().at(run.first);
    if (!entry.is_bucket() || entry.pool_number() != number_) return;
    touch_fresh(Folio::huge, run.first, platform::page_bytes());
}

// Time on a processor: what others on a busy machine take is no cost of a page.
void PageHeap::touch_fresh(Folio folio, PageNumber first, std::size_t bytes) noexcept {
    const std::uint64_t begin_ns = options_.thread_time_ns();
    platform::prefault(space_.address_of(first), bytes);
    options_.folios->note(folio, options_.thread_time_ns() - begin_ns);
}

void PageHeap::prefault(PageRun run) noexcept {
    if (options_.folios == nullptr || options_.huge_pages != HugePages::buckets) {
        platform::prefault(space_.address_of(run.first), run.count * page_bytes);
        return;
    }
    const PageNumber end = run.first + run.count;
    Folio largest = Folio::small;
    for (PageNumber at = run.first; at != end;) {
        const PageNumber granule_end = at / granule_pages * granule_pages + granule_pages;
        const PageRun piece{at, std::min(granule_end, end) - at};
        const bool whole = piece.count == granule_pages;
        const Folio folio = whole ? options_.folios->for_granule(FolioChoice::Wish::passes)
                                  : options_.folios->for_part();
        ask(folio, piece);
        if (whole) {
            touch_fresh(folio, at, platform::huge_page_bytes);
        } else {
            platform::prefault(space_.address_of(at), piece.count * page_bytes);
        }
        largest = std::max(largest, folio);
        at += piece.count;
    }
    // Given back, and in the next one's hands, it may never be touched whole. And neighbours that
    // wish for the same are one mapping.
    if (largest != Folio::small) {
        platform::prefer_small_pages(space_.address_of(run.first), run.count * page_bytes);
    }
}

}  // namespace tensorpool::pages
