#include "pages/heap/extent_bins.hpp"

#include <algorithm>
#include <bit>

#include "base/alignment.hpp"

namespace tensorpool::pages {
namespace {

// A bin spans an eighth of a doubling, so each of its extents is a good fit. Comparing more of them
// than this costs more than it saves.
constexpr unsigned looks_per_bin = 8;

// Usually only a few extents can hold a large block. If there are many, any of them is good enough.
constexpr unsigned looks_for_lowest = 64;

}  // namespace

constexpr unsigned ExtentBins::bin_of(PageCount pages) noexcept {
    if (pages < bins_per_doubling) return pages;
    const unsigned doubling = static_cast<unsigned>(std::bit_width(pages)) - 4;
    return (doubling + 1) * bins_per_doubling + ((pages >> doubling) & (bins_per_doubling - 1));
}

void ExtentBins::insert(Span& extent) noexcept {
    static_assert(bin_of(~PageCount{0}) < bin_count);
    const unsigned bin = bin_of(extent.pages);
    bins_[bin].push_front(extent);
    used_[bin / 64] |= std::uint64_t{1} << bin % 64;
    total_pages_ += extent.pages;
}

void ExtentBins::remove(Span& extent) noexcept {
    const unsigned bin = bin_of(extent.pages);
    bins_[bin].erase(SpanList::s_iterator_to(extent));
    if (bins_[bin].empty()) used_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
    total_pages_ -= extent.pages;
}

Span* ExtentBins::find(PageCount pages, PageCount alignment) noexcept {
    for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
        if (Span* const found = best_of(bin, pages, alignment)) return found;
    }
    return nullptr;
}

Span* ExtentBins::find_lowest(PageCount pages, PageCount alignment) noexcept {
    Span* lowest = nullptr;
    unsigned looks = 0;
    for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
        for (Span& extent : bins_[bin]) {
            if (position_in(extent, pages, alignment) == extent.end_page()) continue;
            if (lowest == nullptr || extent.first_page < lowest->first_page) lowest = &extent;
            if (++looks == looks_for_lowest) return lowest;
        }
    }
    return lowest;
}

Span* ExtentBins::largest() noexcept {
    Span* found = nullptr;
    for_the_largest(1, [&](Span& extent) { found = &extent; });
    return found;
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

PageNumber ExtentBins::position_in(const Span& extent, PageCount pages,
                                   PageCount alignment) noexcept {
    const auto first = static_cast<PageNumber>(base::align_up(extent.first_page, alignment));
    return std::uint64_t{first} + pages <= extent.end_page() ? first : extent.end_page();
}

Span* ExtentBins::best_of(unsigned bin, PageCount pages, PageCount alignment) noexcept {
    Span* best = nullptr;
    unsigned fits = 0;
    for (Span& extent : bins_[bin]) {
        if (position_in(extent, pages, alignment) == extent.end_page()) continue;
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

}  // namespace tensorpool::pages
