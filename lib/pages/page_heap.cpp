#include "pages/page_heap.hpp"

#include <algorithm>

namespace tensorpool::pages {

Refusal no_records() noexcept {
    Refusal refusal = {"memory for the pool's records", 0};
    refusal.advice = "the system refused memory for tensorpool's own records";
    return refusal;
}

PageHeap::PageHeap(AddressSpace& space, statistics::CommitBudget& budget, unsigned pool_number,
                   const HeapOptions& options, statistics::PoolTotals& totals) noexcept
    : space_(space),
      budget_(budget),
      number_(pool_number),
      options_(options),
      totals_(totals),
      max_capacity_(options.max_capacity) {
    spans_.count_in(totals.record_bytes);
    if (options_.keep_records) spans_.keep_slabs();
    retention_.begin(options_.clock_ns(), std::uint64_t{options_.retain.milliseconds} * 1'000'000,
                     0);
}

PageHeap::~PageHeap() {
    budget_.give_back(capacity());
    space_.take_back(number_, loans_);
}

Span* PageHeap::allocate(const PageRequest& request, SlowPath& path) noexcept {
    if (request.alignment > granule_pages && request.alignment > space_.max_alignment()) {
        path.refusal = {"the largest alignment", space_.max_alignment() * page_bytes};
        path.refusal.advice = "an alignment up to that limit is supported";
        return nullptr;
    }
    const std::size_t lent = lent_bytes();
    // Free extents that are too small for the request count against a limit. They are given back
    // until there is enough room or nothing is left. One of them may be an extent that the growth
    // relied on, so the request is tried again each time.
    do {
        const std::lock_guard guard(mutex_);
        path.shortage = 0;
        Span* const span = take(request, path);
        if (span != nullptr || !request.may_grow || !path.may_grow) return span;
        if (path.shortage == 0 || hot_.total_pages() == 0) report_free(path.refusal);
    } while (path.shortage != 0 && shed(path.shortage, path) != 0);
    if (!path.refusal.knows_free) {  // the free memory could not be given back
        const std::lock_guard guard(mutex_);
        report_free(path.refusal);
    }
    if (lent_bytes() > lent) lend_back();
    return nullptr;
}

void PageHeap::free(Span& span, Changes& changes) noexcept {
    {
        const std::lock_guard guard(mutex_);
        clear_marks(span);
        span.clean = false;
        add_extent(span, PageKind::extent_hot);
        count_free();
    }
    const std::size_t kept = kept_bytes();
    if (kept > options_.retain.bytes) give_back(kept - options_.retain.bytes, changes);
}

// All bytes that are free and committed.
std::size_t PageHeap::kept_bytes() const noexcept {
    return totals_.free_bytes.load(std::memory_order_relaxed) +
           totals_.large_cached_bytes.load(std::memory_order_relaxed) +
           kept_elsewhere_.load(std::memory_order_relaxed);
}

void PageHeap::lock() noexcept {
    mutex_.lock();
    spans_.lock();
}

void PageHeap::unlock() noexcept {
    spans_.unlock();
    mutex_.unlock();
}

Span* PageHeap::take(const PageRequest& request, SlowPath& path) noexcept {
    Span* extent = find_hot(request);
    if (extent == nullptr) {
        if (!request.may_grow || !path.may_grow || !grow(request, path)) return nullptr;
        extent = find_hot(request);
    }
    if (extent != nullptr && request.huge) request_for_span(*extent, request, path);
    Span* const span = extent == nullptr ? nullptr : cut(*extent, request);
    if (span == nullptr) path.refusal = no_records();
    count_free();
    return span;
}

// If large blocks come and go at the lowest addresses, the free memory at the highest addresses
// stays contiguous. On recorded calls (perf/workloads) that takes up to a fifteenth less memory
// than best fit, and never more. For small runs, which fit anywhere, best fit takes less.
Span* PageHeap::find_hot(const PageRequest& request) noexcept {
    constexpr PageCount large_pages = 128;
    return request.pages > large_pages ? hot_.find_lowest(request.pages, request.alignment)
                                       : hot_.find(request.pages, request.alignment);
}

Span* PageHeap::cut(Span& extent, const PageRequest& request) noexcept {
    const PageNumber first = ExtentBins::position_in(extent, request.pages, request.alignment);
    const PageCount before = first - extent.first_page;
    const PageCount after = extent.pages - before - request.pages;
    Span* const front = before == 0 ? nullptr : spans_.make();
    Span* const back = after == 0 ? nullptr : spans_.make();
    if ((before != 0 && front == nullptr) || (after != 0 && back == nullptr)) {
        if (front != nullptr) spans_.destroy(front);
        if (back != nullptr) spans_.destroy(back);
        return nullptr;
    }
    remove_extent(extent);
    const auto keep = [&](Span* rest, PageNumber at, PageCount pages) {
        if (rest == nullptr) return;
        rest->first_page = at;
        rest->pages = pages;
        rest->clean = extent.clean;
        rest->huge = extent.huge;
        add_extent(*rest, PageKind::extent_hot);
    };
    keep(front, extent.first_page, before);
    keep(back, first + request.pages, after);
    extent.first_page = first;
    extent.pages = request.pages;
    mark_in_use(extent, request.kind);
    return &extent;
}

void PageHeap::add_extent(Span& extent, PageKind kind) noexcept {
    extent.kind = kind;
    if (Span* const left = neighbour(extent.first_page - 1, kind); left != nullptr) {
        remove_extent(*left);
        extent.first_page = left->first_page;
        extent.pages += left->pages;
        extent.clean = extent.clean && left->clean;
        extent.huge = extent.huge && left->huge;
        spans_.destroy(left);
    }
    if (Span* const right = neighbour(extent.end_page(), kind); right != nullptr) {
        remove_extent(*right);
        extent.pages += right->pages;
        extent.clean = extent.clean && right->clean;
        extent.huge = extent.huge && right->huge;
        spans_.destroy(right);
    }
    space_.map().set_ends(extent, PageEntry(&extent, number_, kind));
    if (kind == PageKind::extent_hot) {
        hot_.insert(extent);
    } else {
        cold_.insert(extent);
    }
}

void PageHeap::remove_extent(Span& extent) noexcept {
    space_.map().set_ends(extent, PageEntry());
    if (extent.kind == PageKind::extent_hot) {
        hot_.remove(extent);
    } else {
        cold_.remove(extent);
    }
}

Span* PageHeap::neighbour(PageNumber page, PageKind kind) noexcept {
    // Page 0 has no left neighbour: the number of that wraps around to one beyond all pages.
    if (page >= space_.map().page_count()) return nullptr;
    const PageEntry entry = space_.map().at(page);
    return entry.kind() == kind && entry.pool_number() == number_ ? entry.span() : nullptr;
}

void PageHeap::mark_in_use(Span& span, PageKind kind) noexcept {
    span.kind = kind;
    const PageEntry entry(&span, number_, kind);
    if (entry.is_bucket()) {
        space_.map().set_all(span, entry);
        return;
    }
    space_.map().set_ends(span, entry);
    space_.map().set_granules(span, entry);
}

void PageHeap::clear_marks(Span& span) noexcept {
    if (PageEntry(&span, number_, span.kind).is_bucket()) {
        space_.map().set_all(span, PageEntry());
        return;
    }
    space_.map().set_ends(span, PageEntry());
    space_.map().set_granules(span, PageEntry());
}

void PageHeap::count_free() noexcept {
    const std::size_t free_bytes = hot_.total_pages() * page_bytes;
    totals_.free_bytes.store(free_bytes, std::memory_order_relaxed);
    retention_.saw_free(free_bytes);
}

void PageHeap::report_free(Refusal& refusal) noexcept {
    refusal.knows_free = true;
    refusal.free_pages = hot_.total_pages() * page_bytes;
    refusal.largest_free = 0;
    hot_.for_each([&](const Span& extent) {
        refusal.largest_free = std::max(refusal.largest_free, extent.bytes());
    });
}

}  // namespace tensorpool::pages
