#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "pages/span.hpp"

namespace tensorpool::pages {

/// Free extents by size: eight bins for each doubling, and a bit mask to find the next bin that is
/// not empty (after Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). Not thread-safe.
class ExtentBins {
public:
    void insert(Span& extent) noexcept;
    void remove(Span& extent) noexcept;

    /// Returns a good fit for `pages` pages that begin at a multiple of `alignment` pages: the
    /// smallest among the first few fitting extents of the bin, or of the next bin with a fitting
    /// extent. Returns nullptr if none fits.
    Span* find(PageCount pages, PageCount alignment) noexcept;
    /// Returns the fitting extent at the lowest address, among the first few dozen that fit,
    /// beginning with the smallest sizes. Returns nullptr if none fits.
    Span* find_lowest(PageCount pages, PageCount alignment) noexcept;

    template <class Function>
    void for_each(Function function) {
        for (SpanList& bin : bins_) {
            for (Span& extent : bin) function(extent);
        }
    }

    /// Calls `function` for up to `max_count` extents, from the bin of the largest sizes down.
    template <class Function>
    void for_the_largest(unsigned max_count, Function function) {
        for (std::size_t word = used_.size(); word-- > 0;) {
            for (std::uint64_t bits = used_[word]; bits != 0;) {
                const unsigned bit = static_cast<unsigned>(std::bit_width(bits)) - 1;
                bits &= ~(std::uint64_t{1} << bit);
                for (Span& extent : bins_[word * 64 + bit]) {
                    if (max_count-- == 0) return;
                    function(extent);
                }
            }
        }
    }

    /// Returns the extents at the lowest addresses from page `from` on, in order of addresses, as
    /// many as fit into `room`.
    std::span<const PageRun> lowest_from(PageNumber from, std::span<PageRun> room) noexcept;

    std::size_t total_pages() const noexcept { return total_pages_; }
    /// Returns an extent of the bin of the largest sizes, or nullptr if there is none.
    Span* largest() noexcept;

    /// Returns the page at which an aligned run of `pages` pages would begin in the extent, or the
    /// extent's end page if it does not fit.
    static PageNumber position_in(const Span& extent, PageCount pages,
                                  PageCount alignment) noexcept;

private:
    static constexpr unsigned bins_per_doubling = 8;
    // Enough for every PageCount. The largest window has 2^31 pages.
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
