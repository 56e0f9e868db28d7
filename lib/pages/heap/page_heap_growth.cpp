#include <algorithm>
#include <array>
#include <mutex>
#include <span>

#include "base/alignment.hpp"
#include "pages/heap/heap_shard.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::size_t bytes_of(PageCount pages) noexcept {
    return pages * page_bytes;
}

// A growth ends at a multiple of this if the surplus allows, so that huge pages are complete.
constexpr PageCount commit_unit = 16;
// What the marked shard commits at a time, at least: most pools have few marked blocks.
constexpr std::size_t min_marked_step = std::size_t{256} << 10;

}  // namespace

bool HeapShard::commit_pages(PageCount pages, SlowPath& path) noexcept {
    const std::lock_guard guard(mutex_);
    if (wanted_bytes({.pages = pages}, Surplus::no, path) == 0) return false;
    Span* cold = cold_.find(pages, 1);
    if (cold == nullptr) {
        if (!borrow(pages, 1, path.refusal)) return false;
        cold = cold_.find(pages, 1);
    }
    if (!commit_at({cold, cold->first_page, pages}, Surplus::no, path)) return false;
    count_free();
    return true;
}

// Touches a few extents at a time, from the lowest address up. Other threads may allocate or give
// back these extents at the same time, which is safe: touching changes no content, and the system
// refuses it only for pages that are no longer accessible.
void HeapShard::touch_free() noexcept {
    std::array<PageRun, 64> runs;
    for (PageNumber from = 0;;) {
        std::unique_lock lock(mutex_);
        if (from == 0) {
            hot_.for_each([](Span& extent) {
                extent.touched = true;
                extent.set_untouched_end(0);
            });
            untouched_pages_ = 0;
            count_free();
        }
        if (common_.options.huge_pages >= HugePages::automatic) {
            hot_.for_each([this](Span& extent) { request_huge_pages(extent); });
        }
        const std::span<const PageRun> found = hot_.lowest_from(from, runs);
        if (platform::decommit_keeps_access()) lock.unlock();
        for (const PageRun& run : found) {
            platform::prefault(space_.address_of(run.first), bytes_of(run.count));
        }
        if (found.size() < runs.size()) return;
        from = found.back().first + found.back().count;
    }
}

bool HeapShard::grow(const PageRequest& request, SlowPath& path) noexcept {
    Position position = cheapest_position(request);
    if (position.cold == nullptr) {
        if (wanted_bytes({.pages = request.pages}, Surplus::no, path) == 0) return false;
        if (!borrow(request.pages, request.alignment, path.refusal)) return false;
        position = cheapest_position(request);
    }
    // Requests with so large an alignment are rare. Other requests would not use a surplus behind
    // the span.
    const bool is_apart = request.alignment > granule_pages;
    return commit_at(position, is_apart ? Surplus::no : Surplus::yes, path);
}

// Returns the position at which the fewest pages have to be committed. Candidates are the cold
// extent that fits best and the cold neighbours of the largest hot extents; adjacent hot extents
// reduce the number of pages.
HeapShard::Position HeapShard::cheapest_position(const PageRequest& request) noexcept {
    constexpr unsigned max_looks = 16;
    Position best;
    const auto consider = [&](Span* cold) {
        if (cold == nullptr) return;
        const Position position = position_beside(*cold, request);
        if (position.pages == 0) return;
        if (best.cold == nullptr || position.pages < best.pages) best = position;
    };
    consider(cold_.find(request.pages, request.alignment));
    hot_.for_the_largest(max_looks, [&](Span& hot) {
        consider(neighbour(hot.first_page - 1, PageKind::extent_cold));
        consider(neighbour(hot.end_page(), PageKind::extent_cold));
    });
    return best;
}

// Returns a position of 0 pages if the request does not fit there.
HeapShard::Position HeapShard::position_beside(Span& cold, const PageRequest& request) noexcept {
    const Span* const left = neighbour(cold.first_page - 1, PageKind::extent_hot);
    const Span* const right = neighbour(cold.end_page(), PageKind::extent_hot);
    Span joined;
    joined.first_page = left == nullptr ? cold.first_page : left->first_page;
    joined.pages = (right == nullptr ? cold.end_page() : right->end_page()) - joined.first_page;
    const PageNumber begin = ExtentBins::position_in(joined, request.pages, request.alignment);
    const PageNumber first = std::max(begin, cold.first_page);
    const PageNumber end = std::min(begin + request.pages, cold.end_page());
    return {&cold, first, begin == joined.end_page() ? 0 : end - first};
}

bool HeapShard::commit_at(Position position, Surplus surplus, SlowPath& path) noexcept {
    if (position.cold == nullptr) return false;
    const std::size_t needed = bytes_of(position.pages);
    const std::size_t wanted = wanted_bytes(position, surplus, path);
    if (wanted == 0) return false;
    bool tried = false;
    const std::size_t grown = common_.account.take_and_get(
        needed, wanted, common_.options.growth.fraction, page_bytes, path.budget,
        [&](std::size_t bytes) {
            tried = true;
            return commit_run(*position.cold,
                              {position.first, static_cast<PageCount>(bytes / page_bytes)});
        });
    if (grown == 0) {
        path.refusal = common_.account.refuse(needed, tried, path.budget);
        path.shortage = needed;
        return false;
    }
    count_growth(grown);
    path.grown += grown;
    path.fresh = {position.first, static_cast<PageCount>(grown / page_bytes)};
    return true;
}

// The bytes to commit: the shortfall plus as much surplus as the limit allows. 0 if the limit does
// not allow the shortfall.
std::size_t HeapShard::wanted_bytes(Position position, Surplus surplus,
                                    SlowPath& path) const noexcept {
    path.budget.clear();
    const std::size_t needed = bytes_of(position.pages);
    const std::size_t limit = common_.max_capacity == 0 ? SIZE_MAX : common_.max_capacity;
    const std::size_t capacity = common_.capacity();  // once: other shards may lower it
    const std::size_t room = limit - std::min(limit, capacity);
    if (needed > room) {
        path.refusal = {"max_capacity", limit};
        path.refusal.needed_limit = capacity + needed;
        path.refusal.missing = capacity + needed - limit;
        path.shortage = needed - room;
        return 0;
    }
    if (surplus == Surplus::no) return needed;
    const auto by_factor =
        static_cast<std::size_t>(static_cast<double>(capacity) * common_.options.growth.factor);
    const std::size_t whole = bytes_of(position.cold->end_page() - position.first);
    std::size_t step = std::max(common_.options.growth.step, by_factor);
    if (is_marked()) {
        step = std::min(step, std::max(bytes_of(common_.low_loans.count / 8), min_marked_step));
    }
    const std::size_t max_bytes = std::min(std::max(step, needed), whole);
    const std::size_t ends_well = std::min({base::align_up(max_bytes, bytes_of(commit_unit)), whole,
                                            base::align_down(room, page_bytes)});
    return std::max(ends_well, needed);
}

bool HeapShard::commit_run(Span& cold, PageRun run) noexcept {
    if (!commit_alone(cold, run)) return false;
    if (common_.options.huge_pages == HugePages::always) request_huge_pages(cold);
    add_extent(cold, PageKind::extent_hot);
    return true;
}

// Makes the run an extent of its own that is in no list, and commits it.
bool HeapShard::commit_alone(Span& cold, PageRun run) noexcept {
    if (!isolate(cold, run)) return false;
    if (space_.commit(run)) return true;
    add_extent(cold, PageKind::extent_cold);
    return false;
}

// Reduces the extent to the run and takes it out of its list. The rest before and behind it stays
// cold.
bool HeapShard::isolate(Span& cold, PageRun run) noexcept {
    const PageCount before = run.first - cold.first_page;
    const PageCount after = cold.pages - before - run.count;
    Span* const front = before == 0 ? nullptr : spans_.make();
    Span* const back = after == 0 ? nullptr : spans_.make();
    if ((before != 0 && front == nullptr) || (after != 0 && back == nullptr)) {
        if (front != nullptr) spans_.destroy(front);
        if (back != nullptr) spans_.destroy(back);
        return false;
    }
    remove_extent(cold);
    const auto keep = [&](Span* rest, PageNumber at, PageCount pages) {
        if (rest == nullptr) return;
        rest->first_page = at;
        rest->pages = pages;
        rest->clean = cold.clean;
        rest->touched = cold.touched;
        add_extent(*rest, PageKind::extent_cold);
    };
    keep(front, cold.first_page, before);
    keep(back, run.first + run.count, after);
    cold.first_page = run.first;
    cold.pages = run.count;
    cold.huge = false;
    return true;
}

// Other shards reduce the capacity without the lock of growth.
void HeapShard::count_growth(std::size_t bytes) noexcept {
    statistics::PoolTotals& totals = common_.totals;
    const std::size_t before = totals.capacity_bytes.fetch_add(bytes, std::memory_order_relaxed);
    detail::add(totals.growths, 1);
    detail::add(totals.grown_bytes, bytes);
    base::raise_to(totals.peak_capacity_bytes, before + bytes);
}

}  // namespace tensorpool::pages
