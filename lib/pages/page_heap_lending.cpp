// Addresses: borrowed when the heap has to grow, and returned when they are cold.

#include <algorithm>
#include <array>

#include "pages/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

bool PageHeap::borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept {
    Span* const cold = spans_.make();
    if (cold == nullptr) {
        refusal = no_records();
        return false;
    }
    const PageCount usual = space_.usual_loan(lent_bytes());
    PageRun run = space_.lend(number_, pages, usual, alignment);
    if (run.count == 0 && touching_ == 0) {
        SpanList leaving;
        collect_cold(leaving);
        if (!leaving.empty()) {
            return_addresses(leaving);
            run = space_.lend(number_, pages, pages, alignment);
        }
    }
    if (run.count == 0) {
        spans_.destroy(cold);
        refusal = {"address space", space_.max_pages() * page_bytes};
        refusal.advice =
            "no run of addresses is long enough: fewer pools or larger blocks would "
            "help, or a higher `ulimit -v`";
        return false;
    }
    cold->first_page = run.first;
    cold->pages = run.count;
    cold->clean = true;
    note_loan(run);
    add_extent(*cold, PageKind::extent_cold);
    return true;
}

void PageHeap::note_loan(PageRun run) noexcept {
    void* const address = space_.address_of(run.first);
    const std::size_t bytes = run.count * page_bytes;
    if (options_.numa.placement == NumaPolicy::Placement::prefer) {
        platform::prefer_numa_node(address, bytes, options_.numa.node);
    } else if (options_.numa.placement == NumaPolicy::Placement::interleave) {
        platform::interleave_numa_nodes(address, bytes);
    }
    const PageNumber end = std::max(loans_.first + loans_.count, run.first + run.count);
    loans_.first = loans_.count == 0 ? run.first : std::min(loans_.first, run.first);
    loans_.count = end - loans_.first;
    detail::add(totals_.reserved_bytes, bytes);
    base::raise_to(totals_.peak_reserved_bytes,
                   totals_.reserved_bytes.load(std::memory_order_relaxed));
}

void PageHeap::lend_back() noexcept {
    SpanList leaving;
    {
        const std::lock_guard guard(mutex_);
        if (touching_ == 0) collect_cold(leaving);
    }
    return_addresses(leaving);
}

// Takes the whole granules of cold extents out of the heap. Extents are visited from the largest
// size down, a limited number at a time. Extents without a whole granule may fill that number and
// hide others of their size, which then stay.
void PageHeap::collect_cold(SpanList& leaving) noexcept {
    std::array<Span*, 64> found;
    for (;;) {
        unsigned count = 0;
        cold_.for_the_largest(found.size(), [&](Span& extent) {
            if (granules_in(extent).count != 0) found[count++] = &extent;
        });
        if (count == 0) return;
        for (unsigned i = 0; i != count; ++i) {
            Span& extent = *found[i];
            if (!isolate(extent, granules_in(extent))) return;
            leaving.push_back(extent);
            totals_.reserved_bytes.store(
                totals_.reserved_bytes.load(std::memory_order_relaxed) - extent.bytes(),
                std::memory_order_relaxed);
        }
    }
}

PageRun PageHeap::granules_in(const Span& extent) noexcept {
    const PageNumber first = (extent.first_page + granule_pages - 1) / granule_pages;
    const PageNumber end = extent.end_page() / granule_pages;
    return end > first ? PageRun{first * granule_pages, (end - first) * granule_pages} : PageRun{};
}

void PageHeap::return_addresses(SpanList& leaving) noexcept {
    while (!leaving.empty()) {
        Span& extent = leaving.front();
        leaving.pop_front();
        space_.take_back(number_, {extent.first_page, extent.pages});
        spans_.destroy(&extent);
    }
}

}  // namespace tensorpool::pages
