#include <algorithm>

#include "base/alignment.hpp"
#include "pages/large_sizes.hpp"
#include "pages/page_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return pages * page_bytes;
}

// A growth ends at such a boundary where the surplus allows, so that huge pages are whole.
constexpr PageCount commit_unit = 16;

}  // namespace

bool PageHeap::reserve(std::size_t bytes, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    // A limit that is no whole number of pages is reached as far as whole pages go.
    const std::size_t limit = max_capacity_;
    if (bytes <= limit) bytes = std::min(bytes, base::align_down(limit, page_bytes));
    if (capacity() < bytes) {
        const std::size_t missing = bytes - capacity();
        if (missing > most_large_bytes) {
            path.refusal = {"address space", most_large_bytes};
            path.refusal.advice = "no pool reserves more than that at once";
            return false;
        }
        const auto pages = static_cast<PageCount>(base::ceil_divide(missing, page_bytes));
        Place place = smallest_cold(pages);
        if (place.cold == nullptr) {
            if (!borrow(pages, path.refusal)) return false;
            place = smallest_cold(pages);
        }
        if (!commit_place(place, Surplus::no, path)) {
            path.refusal.missing = 0;  // what is freed stays part of the capacity
            return false;
        }
    }
    floor_ = std::max(floor_, base::align_up(bytes, page_bytes));
    hot_.for_each([this](Span& extent) {
        if (options_.huge_pages >= HugePages::automatic) ask_for_huge_pages(extent);
        platform::prefault(space_.address_of(extent.first_page), extent.bytes());
    });
    count_free();
    return true;
}

void PageHeap::limit_capacity(std::size_t bytes) noexcept {
    max_capacity_ = bytes;
    if (bytes != 0) floor_ = std::min(floor_, bytes);
}

bool PageHeap::grow(const PageRequest& request, SlowPath& path) noexcept {
    Place place = cheapest_place(request);
    if (place.cold == nullptr) {
        if (!borrow(request.pages + request.alignment - 1, path.refusal)) return false;
        place = cheapest_place(request);
    }
    return commit_place(place, Surplus::yes, path);
}

// The place where the fewest pages have to be committed: what is hot on either side of a cold
// extent counts. Growth is rare and cold extents are few, so all are looked at.
PageHeap::Place PageHeap::cheapest_place(const PageRequest& request) noexcept {
    Place best;
    for (Span& cold : cold_) {
        const Span* const left = neighbour(cold.first_page - 1, PageKind::extent_hot);
        const Span* const right = neighbour(cold.end_page(), PageKind::extent_hot);
        Span joined;
        joined.first_page = left == nullptr ? cold.first_page : left->first_page;
        joined.pages = (right == nullptr ? cold.end_page() : right->end_page()) - joined.first_page;
        const PageNumber first = ExtentBins::place_in(joined, request.pages, request.alignment);
        if (first == joined.end_page()) continue;
        const PageNumber end = std::min(first + request.pages, cold.end_page());
        const PageCount pages = end - cold.first_page;
        if (best.cold == nullptr || pages < best.pages) best = {&cold, pages};
    }
    return best;
}

PageHeap::Place PageHeap::smallest_cold(PageCount pages) noexcept {
    Place best;
    for (Span& cold : cold_) {
        if (cold.pages < pages) continue;
        if (best.cold == nullptr || cold.pages < best.cold->pages) best = {&cold, pages};
    }
    return best;
}

bool PageHeap::borrow(PageCount pages, Refusal& refusal) noexcept {
    Span* const cold = spans_.make();
    if (cold == nullptr) {
        refusal = no_records();
        return false;
    }
    const PageRun run = space_.lend(number_, pages, space_.usual_loan());
    if (run.count == 0) {
        spans_.destroy(cold);
        refusal = {"address space", bytes_of(space_.map().page_count())};
        refusal.advice =
            "no run of addresses is long enough: fewer pools or larger blocks would "
            "help, or a higher `ulimit -v` when the program starts";
        return false;
    }
    cold->first_page = run.first;
    cold->pages = run.count;
    cold->clean = true;
    void* const address = space_.address_of(run.first);
    if (options_.numa.placement == NumaPolicy::Placement::prefer) {
        platform::prefer_numa_node(address, cold->bytes(), options_.numa.node);
    } else if (options_.numa.placement == NumaPolicy::Placement::interleave) {
        platform::interleave_numa_nodes(address, cold->bytes());
    }
    detail::add(totals_.reserved_bytes, cold->bytes());
    base::raise_to(totals_.peak_reserved_bytes,
                   totals_.reserved_bytes.load(std::memory_order_relaxed));
    add_extent(*cold, PageKind::extent_cold);
    return true;
}

bool PageHeap::commit_place(Place place, Surplus surplus, SlowPath& path) noexcept {
    if (place.cold == nullptr) return false;
    const std::size_t needed = bytes_of(place.pages);
    const std::size_t wanted = wanted_bytes(place, surplus, path);
    if (wanted == 0) return false;
    const PageNumber first = place.cold->first_page;
    bool asked = false;
    const std::size_t grown = budget_.take_and_get(
        needed, wanted, options_.growth.fraction, page_bytes, [&](std::size_t bytes) {
            asked = true;
            return commit_front(*place.cold, static_cast<PageCount>(bytes / page_bytes));
        });
    if (grown == 0) {
        path.refusal = budget_.refuse(needed, asked);
        path.shortage = needed;
        return false;
    }
    count_growth(grown);
    path.grown += grown;
    path.fresh = {first, static_cast<PageCount>(grown / page_bytes)};
    return true;
}

// With the surplus as far as the limit allows; 0 where the limit does not even allow the shortfall.
std::size_t PageHeap::wanted_bytes(Place place, Surplus surplus, SlowPath& path) const noexcept {
    const std::size_t needed = bytes_of(place.pages);
    const std::size_t limit = max_capacity_ == 0 ? SIZE_MAX : max_capacity_;
    const std::size_t room = limit - std::min(limit, capacity());
    if (needed > room) {
        path.refusal = {"max_capacity", limit};
        path.refusal.needed_limit = capacity() + needed;
        path.refusal.missing = capacity() + needed - limit;
        path.shortage = needed - room;
        return 0;
    }
    if (surplus == Surplus::no) return needed;
    const auto by_factor =
        static_cast<std::size_t>(static_cast<double>(capacity()) * options_.growth.factor);
    const std::size_t whole = bytes_of(place.cold->pages);
    const std::size_t most = std::min(std::max({options_.growth.step, by_factor, needed}), whole);
    const std::size_t ends_well = std::min(
        {base::align_up(most, bytes_of(commit_unit)), whole, base::align_down(room, page_bytes)});
    return std::max(ends_well, needed);
}

bool PageHeap::commit_front(Span& cold, PageCount pages) noexcept {
    Span* const rest = pages == cold.pages ? nullptr : spans_.make();
    if (pages != cold.pages && rest == nullptr) return false;
    const PageRun run{cold.first_page, pages};
    if (!space_.commit(run)) {
        if (rest != nullptr) spans_.destroy(rest);
        return false;
    }
    remove_extent(cold);
    if (rest != nullptr) {
        rest->first_page = cold.first_page + pages;
        rest->pages = cold.pages - pages;
        rest->clean = cold.clean;
        add_extent(*rest, PageKind::extent_cold);
    }
    cold.pages = pages;
    cold.huge = false;
    if (options_.huge_pages == HugePages::always) ask_for_huge_pages(cold);
    add_extent(cold, PageKind::extent_hot);
    return true;
}

// Of memory that nobody has touched yet, once.
void PageHeap::ask_for_huge_pages(Span& extent) noexcept {
    if (!extent.clean || extent.huge) return;
    platform::prefer_huge_pages(space_.address_of(extent.first_page), extent.bytes());
    extent.huge = true;
}

void PageHeap::count_growth(std::size_t bytes) noexcept {
    detail::add(totals_.capacity_bytes, bytes);
    detail::add(totals_.growths, 1);
    detail::add(totals_.grown_bytes, bytes);
    base::raise_to(totals_.peak_capacity_bytes, capacity());
}

}  // namespace tensorpool::pages
