#pragma once

#include <climits>

#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"
#include "pages/record_arena.hpp"
#include "pages/span.hpp"

namespace tensorpool::pages {

/// Free extents by size: eight bins for each doubling, and a bit mask to find the next bin that is
/// not empty (after Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). Not thread-safe.
class ExtentBins {
public:
    void insert(Span& extent) noexcept;
    void remove(Span& extent) noexcept {
        const unsigned bin = bin_of(extent.pages);
        bins_[bin].erase(SpanList::s_iterator_to(extent));
        if (bins_[bin].empty()) used_[bin / 64] &= ~(std::uint64_t{1} << bin % 64);
        total_pages_ -= extent.pages;
    }

    /// Returns a good fit for `pages` pages that begin at a multiple of `alignment` pages: the
    /// smallest among the first few fitting extents of the bin, or of the next bin with a fitting
    /// extent. Returns nullptr if none fits.
    Span* find(PageCount pages, PageCount alignment) noexcept {
        Span* const found = find(pages, alignment, misfits_per_bin);
        return found != nullptr ? found : find(pages, alignment, UINT_MAX);
    }
    /// Returns the fitting extent at the lowest address, among the first few dozen that fit,
    /// beginning with the smallest sizes. Returns nullptr if none fits.
    Span* find_lowest(PageCount pages, PageCount alignment) noexcept {
        Span* const found = find_lowest(pages, alignment, misfits_per_bin);
        return found != nullptr ? found : find_lowest(pages, alignment, UINT_MAX);
    }

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
    Span* largest() noexcept {
        Span* found = nullptr;
        for_the_largest(1, [&](Span& extent) { found = &extent; });
        return found;
    }

    /// Returns the page at which an aligned run of `pages` pages would begin in the extent, or the
    /// extent's end page if it does not fit.
    static PageNumber position_in(const Span& extent, PageCount pages,
                                  PageCount alignment) noexcept {
        const auto first = static_cast<PageNumber>(base::align_up(extent.first_page, alignment));
        return std::uint64_t{first} + pages <= extent.end_page() ? first : extent.end_page();
    }

private:
    static constexpr unsigned bins_per_doubling = 8;
    // Enough for every PageCount. The largest window has 2^31 pages.
    static constexpr unsigned doublings = 30;
    static constexpr unsigned bin_count = doublings * bins_per_doubling;

    static constexpr unsigned bin_of(PageCount pages) noexcept {
        if (pages < bins_per_doubling) return pages;
        const unsigned doubling = static_cast<unsigned>(std::bit_width(pages)) - 4;
        return (doubling + 1) * bins_per_doubling + ((pages >> doubling) & (bins_per_doubling - 1));
    }
    // A bin may be full of extents that are not aligned or a little too small. The next bins mostly
    // have some that fit, so all are looked at only if none was found.
    static constexpr unsigned misfits_per_bin = 32;

    Span* find(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept;
    Span* find_lowest(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept;
    Span* best_of(unsigned bin, PageCount pages, PageCount alignment,
                  unsigned max_misfits) noexcept;
    unsigned next_used(unsigned bin) const noexcept;

    std::array<SpanList, bin_count> bins_;
    std::array<std::uint64_t, (bin_count + 63) / 64> used_ = {};
    std::size_t total_pages_ = 0;
};

/// The pages that one shard borrowed, as spans in use, hot extents (free and committed) and cold
/// extents (free and not committed): their records, their entries in the page map, and the extents
/// by size. No two hot extents are adjacent, nor are two cold ones. Guarded by the shard's lock.
class Extents {
public:
    Extents(AddressSpace& space, unsigned pool_number, unsigned shard) noexcept
        : space_(space), pool_number_(pool_number), shard_(shard) {}

    // For searches. `add` and `remove` change them.
    ExtentBins& hot() noexcept { return hot_; }
    ExtentBins& cold() noexcept { return cold_; }
    /// Returns the hot extent from which to take so many pages, or nullptr.
    Span* find_hot(PageCount pages, PageCount alignment) noexcept;
    /// Returns the extent of a kind that begins or ends at a page, or nullptr.
    Span* find(PageNumber page, PageKind kind) const noexcept;

    /// Makes a run that is in no list an extent of this kind, joined with its neighbours.
    void add(Span& run, PageKind kind) noexcept;
    /// Takes an extent out of its list and out of the page map.
    void remove(Span& extent) noexcept;
    /// Reduces an extent to a run inside and removes that; the rest before and behind stays.
    /// Returns false, and changes nothing, if there is no memory for records.
    bool isolate(Span& extent, PageRun run) noexcept;
    /// Isolates the whole granules of cold extents. Returns their pages.
    std::size_t isolate_cold_granules(SpanList& isolated) noexcept;

    /// Makes a removed extent a span in use, or sets the entries of one that became longer.
    void mark_in_use(Span& span, PageKind kind) noexcept {
        span.kind = kind;
        set_entries(span, PageEntry(&span, pool_number_, kind));
    }
    /// Clears the entries of a span in use, which is in no list then.
    void clear_entries(Span& span) noexcept { set_entries(span, PageEntry()); }
    /// Adds the first pages of the hot extent behind a span in use to the span.
    void lengthen(Span& span, Span& behind, PageCount pages) noexcept;
    /// Makes all but the first `pages` pages of a span in use a hot extent. Returns false, and
    /// changes nothing, if there is no memory for a record.
    bool shorten(Span& span, PageCount pages) noexcept;

    /// Notes that all hot extents have been touched.
    void note_touched() noexcept;
    /// The pages of hot extents that take no pages of the system.
    std::size_t untouched_pages() const noexcept { return untouched_pages_; }

    RecordPool<Span>& records() noexcept { return records_; }

private:
    void set_entries(const Span& span, PageEntry entry) noexcept;

    AddressSpace& space_;
    const unsigned pool_number_;
    const unsigned shard_;
    RecordPool<Span> records_;
    ExtentBins hot_;
    ExtentBins cold_;
    std::size_t untouched_pages_ = 0;
};

/// Where a shard can grow: these pages of a cold extent.
struct GrowthPosition {
    Span* cold = nullptr;
    PageNumber first = 0;
    PageCount pages = 0;

    PageRun run() const noexcept { return {first, pages}; }
};

/// Returns the position at which the fewest pages have to be committed for a request. If there is
/// none, its extent is nullptr. The caller holds the shard's lock.
GrowthPosition cheapest_position(Extents& extents, const PageRequest& request) noexcept;

/// Returns where a moved block of `pages` pages is to begin in a cold extent, which has at least
/// `room_for_move(pages)`: with room to grow behind it, and at the same offset in a huge page as
/// `from`. The system then moves page tables instead of single entries.
GrowthPosition position_for_move(Span& cold, PageRun from, PageCount pages) noexcept;
constexpr PageCount room_for_move(PageCount pages) noexcept {
    return pages + granule_pages - 1;
}

}  // namespace tensorpool::pages
