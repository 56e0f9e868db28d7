#include "pages/heap/heap_shard.hpp"

#include <algorithm>
#include <utility>

namespace tensorpool::pages {
namespace {

/// Returns what `untouched_end` will be of two neighbours that are about to be joined.
PageCount untouched_end_of(const Span& left, const Span& right) noexcept {
    return right.untouched_end() +
           (right.untouched_end() == right.pages ? left.untouched_end() : 0);
}

}  // namespace

Refusal no_records() noexcept {
    Refusal refusal = {"memory for the pool's records", 0};
    refusal.advice = "the system refused memory for tensorpool's own records";
    return refusal;
}

HeapShard::HeapShard(HeapCommon& common, unsigned number) noexcept
    : common_(common), space_(common.space), number_(number) {
    spans_.count_in(common.totals.record_bytes);
    if (common.options.keep_records) spans_.keep_slabs();
}

Span* HeapShard::take_free(const PageRequest& request, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    Span* const extent = find_hot(request);
    return extent == nullptr ? nullptr : take_hot(*extent, request, path);
}

Span* HeapShard::take(const PageRequest& request, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    Span* extent = find_hot(request);
    if (extent == nullptr) {
        if (!grow(request, path)) return nullptr;
        extent = find_hot(request);
    }
    if (extent != nullptr) return take_hot(*extent, request, path);
    path.refusal = no_records();
    return nullptr;
}

void HeapShard::free(Span& span, Zeroed zeroed) noexcept {
    const std::lock_guard guard(mutex_);
    clear_marks(span);
    span.clean = false;
    span.zeroed = zeroed == Zeroed::yes;
    span.set_untouched_end(0);
    add_extent(span, PageKind::extent_hot);
    count_free();
}

bool HeapShard::has_free(PageCount pages) noexcept {
    const std::lock_guard guard(mutex_);
    return find_hot({.pages = pages}) != nullptr;
}

void HeapShard::report_free(Refusal& refusal) noexcept {
    const std::lock_guard guard(mutex_);
    refusal.free_pages += hot_.total_pages() * page_bytes;
    hot_.for_each([&](const Span& extent) {
        refusal.largest_free = std::max(refusal.largest_free, extent.bytes());
    });
}

void HeapShard::lock() noexcept {
    mutex_.lock();
    spans_.lock();
}

void HeapShard::unlock() noexcept {
    spans_.unlock();
    mutex_.unlock();
}

Span* HeapShard::take_hot(Span& extent, const PageRequest& request, SlowPath& path) noexcept {
    if (request.huge) request_for_span(extent, request, path);
    Span* const span = cut(extent, request);
    if (span == nullptr) path.refusal = no_records();
    count_free();
    return span;
}

// If large blocks come and go at the lowest addresses, the free memory at the highest addresses
// stays contiguous. On recorded calls (perf/workloads) that takes up to a fifteenth less memory
// than best fit, and never more. For small runs, which fit anywhere, best fit takes less.
Span* HeapShard::find_hot(const PageRequest& request) noexcept {
    constexpr PageCount large_pages = 128;
    return request.pages > large_pages ? hot_.find_lowest(request.pages, request.alignment)
                                       : hot_.find(request.pages, request.alignment);
}

Span* HeapShard::cut(Span& extent, const PageRequest& request) noexcept {
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
    const PageNumber untouched = extent.end_page() - extent.untouched_end();
    const auto keep = [&](Span* rest, PageNumber at, PageCount pages) {
        if (rest == nullptr) return;
        rest->first_page = at;
        rest->pages = pages;
        rest->take_content(extent);
        rest->set_untouched_end(at + pages - std::clamp(untouched, at, at + pages));
        add_extent(*rest, PageKind::extent_hot);
    };
    keep(front, extent.first_page, before);
    keep(back, first + request.pages, after);
    extent.first_page = first;
    extent.pages = request.pages;
    mark_in_use(extent, request.kind);
    return &extent;
}

void HeapShard::add_extent(Span& extent, PageKind kind) noexcept {
    extent.kind = kind;
    if (Span* const left = neighbour(extent.first_page - 1, kind); left != nullptr) {
        remove_extent(*left);
        const PageCount untouched_end = untouched_end_of(*left, extent);
        extent.first_page = left->first_page;
        extent.pages += left->pages;
        extent.join_content(*left);
        extent.set_untouched_end(untouched_end);
        spans_.destroy(left);
    }
    if (Span* const right = neighbour(extent.end_page(), kind); right != nullptr) {
        remove_extent(*right);
        const PageCount untouched_end = untouched_end_of(extent, *right);
        extent.pages += right->pages;
        extent.join_content(*right);
        extent.set_untouched_end(untouched_end);
        spans_.destroy(right);
    }
    space_.map().set_ends(extent, PageEntry(&extent, common_.number, kind));
    if (kind == PageKind::extent_hot) {
        hot_.insert(extent);
        untouched_pages_ += extent.untouched_end();
    } else {
        cold_.insert(extent);
    }
}

void HeapShard::remove_extent(Span& extent) noexcept {
    space_.map().set_ends(extent, PageEntry());
    if (extent.kind == PageKind::extent_hot) {
        hot_.remove(extent);
        untouched_pages_ -= extent.untouched_end();
    } else {
        cold_.remove(extent);
    }
}

Span* HeapShard::neighbour(PageNumber page, PageKind kind) noexcept {
    // Page 0 has no left neighbour: the number of that wraps around to one beyond all pages.
    if (page >= space_.map().page_count()) return nullptr;
    const PageEntry entry = space_.map().at(page);
    if (entry.kind() != kind || entry.pool_number() != common_.number) return nullptr;
    // The record of another shard's extent must not be read.
    return space_.is_lent_to(common_.number, number_, page) ? entry.span() : nullptr;
}

void HeapShard::mark_in_use(Span& span, PageKind kind) noexcept {
    span.kind = kind;
    const PageEntry entry(&span, common_.number, kind);
    if (entry.is_bucket() || entry.is_marked()) {
        space_.map().set_all({span.first_page, span.pages}, entry);
        return;
    }
    space_.map().set_ends(span, entry);
    space_.map().set_granules(span, entry);
}

void HeapShard::clear_marks(Span& span) noexcept {
    const PageEntry entry(&span, common_.number, span.kind);
    if (entry.is_bucket() || entry.is_marked()) {
        space_.map().set_all({span.first_page, span.pages}, PageEntry());
        return;
    }
    space_.map().set_ends(span, PageEntry());
    space_.map().set_granules(span, PageEntry());
}

void HeapShard::count_free() noexcept {
    const std::size_t free_bytes = hot_.total_pages() * page_bytes;
    const std::size_t untouched_bytes = untouched_pages_ * page_bytes;
    common_.count_free(free_bytes - std::exchange(counted_free_, free_bytes),
                       untouched_bytes - std::exchange(counted_untouched_, untouched_bytes));
}

}  // namespace tensorpool::pages
