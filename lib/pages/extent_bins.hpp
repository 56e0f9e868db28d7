#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pages/span.hpp"

namespace tensorpool::pages {

/// Free extents by size: eight bins to each doubling, two levels of bit masks to find the next one
/// that is not empty (after Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). Not thread-safe.
class ExtentBins {
public:
    void insert(Span& extent) noexcept;
    void remove(Span& extent) noexcept;

    /// The best fit for `pages` pages that begin at a multiple of `alignment` pages: the smallest
    /// that is found among the first few of its bin, otherwise of the next bin. nullptr if none
    /// fits.
    Span* find(PageCount pages, PageCount alignment) noexcept;
    /// The one at the lowest address that fits, as far as a few dozen looks from the best fit on
    /// tell. nullptr if none fits.
    Span* find_lowest(PageCount pages, PageCount alignment) noexcept;

    template <class Function>
    void for_each(Function function) {
        for (SpanList& bin : bins_) {
            for (Span& extent : bin) function(extent);
        }
    }

    /// Up to so many of them, those of the largest sizes first.
    template <class Function>
    void for_the_largest(unsigned most, Function function) {
        for (std::size_t word = used_.size(); word-- > 0;) {
            for (std::uint64_t bits = used_[word]; bits != 0;) {
                const unsigned bit = static_cast<unsigned>(std::bit_width(bits)) - 1;
                bits &= ~(std::uint64_t{1} << bit);
                for (Span& extent : bins_[word * 64 + bit]) {
                    if (most-- == 0) return;
                    function(extent);
                }
            }
        }
    }

    /// Those at the lowest addresses from `from` on, in their order: as many as have room.
    std::span<const PageRun> lowest_from(PageNumber from, std::span<PageRun> room) noexcept;

    std::size_t total_pages() const noexcept { return total_pages_; }
    /// Any extent, a large one first; nullptr when there is none.
    Span* largest() noexcept;

    /// Where a run of `pages` aligned pages would begin in the extent; its end when it has no room.
    static PageNumber place_in(const Span& extent, PageCount pages, PageCount alignment) noexcept;

private:
    static constexpr unsigned bins_per_doubling = 8;
    // For every number of pages, of which the largest window has 2^31.
    static constexpr unsigned doublings = 30;
    static constexpr unsigned bin_count = doublings * bins_per_doubling;

    static constexpr unsigned bin_of(PageCount pages) noexcept;
    Span* best_of(unsigned bin, PageCount pages, PageCount alignment) noexcept;
    unsigned next_used(unsigned bin) const noexcept;

    std::array<SpanList, bin_count> bins_;
    std::array<std::uint64_t, (bin_count + 63) / 64> used_ = {};
    std::size_t total_pages_ = 0;
};

}  // namespace tensorpool::pages
