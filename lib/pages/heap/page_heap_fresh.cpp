// Fresh memory: the sizes of pages that it requests, and the cost of first touches.

#include <algorithm>

#include "base/alignment.hpp"
#include "pages/heap/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

static_assert(granule_pages * page_bytes == platform::huge_page_bytes);

namespace {

void request_pages(char* begin, std::size_t bytes, Folio folio) noexcept {
    if (folio == Folio::huge) platform::prefer_huge_pages(begin, bytes);
    if (folio == Folio::medium) platform::prefer_medium_pages(begin, bytes);
}

}  // namespace

// Requests huge pages once, for memory that is not touched yet.
void HeapShard::request_huge_pages(Span& extent) noexcept {
    if (!extent.clean || extent.huge) return;
    platform::prefer_huge_pages(space_.address_of(extent.first_page), extent.bytes());
    extent.huge = true;
}

// A granule's request is made when the first span in it is cut off, so that the measured cost of
// the previous granule is taken into account. At the beginning of an extent, the rest of a partial
// granule requests medium pages.
void HeapShard::request_for_span(Span& extent, const PageRequest& request,
                                 SlowPath& path) noexcept {
    FolioChoice* const folios = common_.options.folios;
    if (folios == nullptr || common_.options.huge_pages != HugePages::buckets)
        return request_huge_pages(extent);
    if (!extent.clean) return;
    const PageNumber first = ExtentBins::position_in(extent, request.pages, request.alignment);
    const auto granule = static_cast<PageNumber>(base::align_up(first, std::size_t{granule_pages}));
    if (granule < first + request.pages && granule + granule_pages <= extent.end_page()) {
        const Folio folio = folios->for_granule();
        request_pages(space_.address_of(granule), granule_pages * page_bytes, folio);
        if (folio == Folio::huge) path.untried = {granule, granule_pages};
    } else if (!extent.huge) {
        const PageCount pages = std::min(granule, extent.end_page()) - first;
        request_pages(space_.address_of(first), pages * page_bytes, folios->for_part());
    }
    extent.huge = true;
}

void PageHeap::try_huge_page(const SlowPath& path) noexcept {
    const PageRun run = path.untried;
    if (run.count == 0) return;
    const Touching touching(common_);
    // Other threads may have freed the span, and its addresses may have been returned.
    const PageEntry entry = space().map().at(run.first);
    if (!entry.is_bucket() || entry.pool_number() != pool_number()) return;
    touch_fresh(Folio::huge, run.first, platform::page_bytes());
}

// Measures processor time, so that other threads on a busy machine do not count as the cost of a
// page.
void PageHeap::touch_fresh(Folio folio, PageNumber first, std::size_t bytes) noexcept {
    const std::uint64_t begin_ns = options().thread_time_ns();
    platform::prefault(space().address_of(first), bytes);
    const std::uint64_t end_ns = options().thread_time_ns();
    if (end_ns >= begin_ns) options().folios->note(folio, end_ns - begin_ns);
}

void PageHeap::prefault(PageRun run) noexcept {
    if (options().folios == nullptr || options().huge_pages != HugePages::buckets) {
        platform::prefault(space().address_of(run.first), run.count * page_bytes);
        return;
    }
    const PageNumber end = run.first + run.count;
    Folio largest = Folio::small;
    for (PageNumber at = run.first; at != end;) {
        const PageNumber granule_end = at / granule_pages * granule_pages + granule_pages;
        const PageRun piece{at, std::min(granule_end, end) - at};
        const bool whole = piece.count == granule_pages;
        const Folio folio = whole ? options().folios->for_granule(FolioChoice::Advice::temporary)
                                  : options().folios->for_part();
        request_pages(space().address_of(at), piece.count * page_bytes, folio);
        if (whole) {
            touch_fresh(folio, at, platform::huge_page_bytes);
        } else {
            platform::prefault(space().address_of(at), piece.count * page_bytes);
        }
        largest = std::max(largest, folio);
        at += piece.count;
    }
    // Revokes the request: after the block is freed, the next user may never touch all of it. Also,
    // adjacent memory with equal requests is one mapping.
    if (largest != Folio::small) {
        platform::prefer_small_pages(space().address_of(run.first), run.count * page_bytes);
    }
}

}  // namespace tensorpool::pages
