// Addresses: borrowed when the heap has to grow, and returned when they are cold.

#include <algorithm>
#include <array>

#include "pages/heap/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

bool HeapShard::borrow(PageCount pages, PageCount alignment, Refusal& refusal) noexcept {
    Span* const cold = spans_.make();
    if (cold == nullptr) {
        refusal = no_records();
        return false;
    }
    const PageCount usual = is_marked() ? pages : space_.usual_loan(common_.lent_bytes());
    PageRun run = space_.lend(common_.number, pages, usual, alignment, number_);
    if (run.count == 0 && common_.touching == 0) {
        SpanList leaving;
        take_cold(leaving);
        if (!leaving.empty()) {
            return_addresses(leaving);
            run = space_.lend(common_.number, pages, pages, alignment, number_);
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

void HeapShard::note_loan(PageRun run) noexcept {
    void* const address = space_.address_of(run.first);
    const std::size_t bytes = run.count * page_bytes;
    const NumaPolicy& numa = common_.options.numa;
    if (numa.placement == NumaPolicy::Placement::prefer) {
        platform::prefer_numa_node(address, bytes, numa.node);
    } else if (numa.placement == NumaPolicy::Placement::interleave) {
        platform::interleave_numa_nodes(address, bytes);
    }
    PageRun& loans = is_marked() ? common_.low_loans : common_.loans;
    const PageNumber end = std::max(loans.first + loans.count, run.first + run.count);
    loans.first = loans.count == 0 ? run.first : std::min(loans.first, run.first);
    loans.count = end - loans.first;
    detail::add(common_.totals.reserved_bytes, bytes);
    base::raise_to(common_.totals.peak_reserved_bytes, common_.lent_bytes());
}

bool PageHeap::charge_outside(std::size_t bytes) noexcept {
    const std::lock_guard guard(common_.growth);
    const std::size_t limit = common_.max_capacity == 0 ? SIZE_MAX : common_.max_capacity;
    const std::size_t before = common_.capacity();
    if (bytes > limit - std::min(limit, before)) return false;
    limits::BudgetRequest request = limits::BudgetRequest::beyond_soft();
    if (common_.account.take(bytes, bytes, 1, page_bytes, request) == 0) return false;
    common_.totals.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    base::raise_to(common_.totals.peak_capacity_bytes, before + bytes);
    return true;
}

void PageHeap::refund_outside(std::size_t bytes) noexcept {
    common_.account.give_back(bytes);
    common_.totals.capacity_bytes.fetch_sub(bytes, std::memory_order_relaxed);
}

void PageHeap::lend_back() noexcept {
    for_each_shard([this](HeapShard& shard) {
        SpanList leaving;
        {
            const std::lock_guard guard(common_.growth);
            if (common_.touching == 0) shard.collect_cold(leaving);
        }
        shard.return_addresses(leaving);
    });
}

void HeapShard::collect_cold(SpanList& leaving) noexcept {
    const std::lock_guard guard(mutex_);
    take_cold(leaving);
}

// Takes the whole granules of cold extents out of the heap. Extents are visited from the largest
// size down, a limited number at a time. Extents without a whole granule may fill that number and
// hide others of their size, which then stay.
void HeapShard::take_cold(SpanList& leaving) noexcept {
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
            common_.totals.reserved_bytes.store(common_.lent_bytes() - extent.bytes(),
                                                std::memory_order_relaxed);
        }
    }
}

PageRun HeapShard::granules_in(const Span& extent) noexcept {
    const PageNumber first = (extent.first_page + granule_pages - 1) / granule_pages;
    const PageNumber end = extent.end_page() / granule_pages;
    return end > first ? PageRun{first * granule_pages, (end - first) * granule_pages} : PageRun{};
}

void HeapShard::return_addresses(SpanList& leaving) noexcept {
    while (!leaving.empty()) {
        Span& extent = leaving.front();
        leaving.pop_front();
        space_.take_back(common_.number, {extent.first_page, extent.pages});
        spans_.destroy(&extent);
    }
}

}  // namespace tensorpool::pages
