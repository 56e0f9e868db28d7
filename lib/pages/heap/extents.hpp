#pragma once

#include <climits>
#include <initializer_list>

#include "pages/address_space.hpp"
#include "pages/heap/page_request.hpp"
#include "pages/record_arena.hpp"

namespace tensorpool::pages {

// Usually only a few extents can hold a large block. If there are many, any of them is good enough.
inline constexpr unsigned looks_for_lowest = 64;

// A bin spans an eighth of a doubling, so each of its extents is a good fit. Comparing more of them
// than this costs more than it saves.
inline constexpr unsigned looks_per_bin = 8;

/// Free extents by size: eight bins for each doubling, and a bit mask to find the next bin that is
/// not empty (after Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). Not thread-safe.
class ExtentBins {
public:
    void insert(Span& extent) noexcept {
        const unsigned bin = bin_of(extent.pages);
        bins_[bin].push_front(extent);
        used_[bin / 64] |= std::uint64_t{1} << bin % 64;
        total_pages_ += extent.pages;
    }
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
    std::span<const PageRun> lowest_from(PageNumber from, std::span<PageRun> room) noexcept {
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

    Span* find(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept {
        for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
            if (Span* const found = best_of(bin, pages, alignment, max_misfits)) return found;
        }
        return nullptr;
    }
    Span* find_lowest(PageCount pages, PageCount alignment, unsigned max_misfits) noexcept {
        Span* lowest = nullptr;
        unsigned looks = 0;
        for (unsigned bin = next_used(bin_of(pages)); bin < bin_count; bin = next_used(bin + 1)) {
            unsigned misfits = 0;
            for (Span& extent : bins_[bin]) {
                if (position_in(extent, pages, alignment) == extent.end_page()) {
                    if (++misfits == max_misfits) break;
                    continue;
                }
                if (lowest == nullptr || extent.first_page < lowest->first_page) lowest = &extent;
                if (++looks == looks_for_lowest) return lowest;
            }
        }
        return lowest;
    }
    Span* best_of(unsigned bin, PageCount pages, PageCount alignment,
                  unsigned max_misfits) noexcept {
        Span* best = nullptr;
        unsigned fits = 0;
        unsigned misfits = 0;
        for (Span& extent : bins_[bin]) {
            if (position_in(extent, pages, alignment) == extent.end_page()) {
                if (++misfits == max_misfits) break;
                continue;
            }
            if (best == nullptr || extent.pages < best->pages) best = &extent;
            if (best->pages == pages || ++fits == looks_per_bin) break;
        }
        return best;
    }
    unsigned next_used(unsigned bin) const noexcept {
        static_assert(bin_of(~PageCount{0}) < bin_count);
        for (unsigned word = bin / 64; word < used_.size(); ++word) {
            const std::uint64_t above =
                word == bin / 64 ? ~std::uint64_t{0} << bin % 64 : ~std::uint64_t{0};
            const std::uint64_t bits = used_[word] & above;
            if (bits != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(bits));
        }
        return bin_count;
    }

    std::array<SpanList, bin_count> bins_;
    std::array<std::uint64_t, (bin_count + 63) / 64> used_ = {};
    std::size_t total_pages_ = 0;
};

inline PageRun granules_in(const Span& extent) noexcept {
    const PageNumber first = (extent.first_page + granule_pages - 1) / granule_pages;
    const PageNumber end = extent.end_page() / granule_pages;
    return end > first ? PageRun{first * granule_pages, (end - first) * granule_pages} : PageRun{};
}

inline void join(Span& run, const Span& other) noexcept {
    const bool is_left = other.first_page < run.first_page;
    const Span& left = is_left ? other : run;
    const Span& right = is_left ? run : other;
    const PageCount untouched_end =
        right.untouched_end() + (right.untouched_end() == right.pages ? left.untouched_end() : 0);
    run.first_page = left.first_page;
    run.pages += other.pages;
    run.join_content(other);
    run.set_untouched_end(untouched_end);
}

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
    /// Returns the hot extent from which to take so many pages, or nullptr. If large blocks come
    /// and go at the lowest addresses, the free memory at the highest addresses stays contiguous.
    /// On recorded calls (perf/workloads) that takes up to a fifteenth less memory than best fit,
    /// and never more. For small runs, which fit anywhere, best fit takes less.
    Span* find_hot(PageCount pages, PageCount alignment) noexcept {
        constexpr PageCount large_pages = 128;
        return pages > large_pages ? hot_.find_lowest(pages, alignment)
                                   : hot_.find(pages, alignment);
    }
    /// Returns the extent of a kind that begins or ends at a page, or nullptr.
    Span* find(PageNumber page, PageKind kind) const noexcept {
        // Page 0 has no left neighbour: the number of that wraps around to one beyond all pages.
        if (page >= space_.map().page_count()) return nullptr;
        const PageEntry entry = space_.map().at(page);
        if (entry.kind() != kind || entry.pool_number() != pool_number_) return nullptr;
        // The record of another shard's extent must not be read.
        return space_.is_lent_to(pool_number_, shard_, page) ? entry.span() : nullptr;
    }

    /// Makes a run that is in no list an extent of this kind, joined with its neighbours.
    void add(Span& run, PageKind kind) noexcept {
        run.kind = kind;
        for (Span* const other : {find(run.first_page - 1, kind), find(run.end_page(), kind)}) {
            if (other == nullptr) continue;
            remove(*other);
            join(run, *other);
            records_.destroy(other);
        }
        space_.map().set_ends(run, PageEntry(&run, pool_number_, kind));
        if (kind == PageKind::extent_hot) {
            hot_.insert(run);
            untouched_pages_ += run.untouched_end();
        } else {
            cold_.insert(run);
        }
    }
    void remove(Span& extent) noexcept {
        space_.map().set_ends(extent, PageEntry());
        if (extent.kind == PageKind::extent_hot) {
            hot_.remove(extent);
            untouched_pages_ -= extent.untouched_end();
        } else {
            cold_.remove(extent);
        }
    }
    /// Reduces an extent to a run inside and removes that; the rest before and behind stays.
    /// Returns false, and changes nothing, if there is no memory for records.
    bool isolate(Span& extent, PageRun run) noexcept {
        const PageCount before = run.first - extent.first_page;
        const PageCount after = extent.pages - before - run.count;
        Span* const front = before == 0 ? nullptr : records_.make();
        Span* const back = after == 0 ? nullptr : records_.make();
        if ((before != 0 && front == nullptr) || (after != 0 && back == nullptr)) {
            if (front != nullptr) records_.destroy(front);
            if (back != nullptr) records_.destroy(back);
            return false;
        }
        remove(extent);
        const PageNumber untouched = extent.end_page() - extent.untouched_end();
        const auto reduce = [&](Span& part, PageNumber first, PageCount pages) {
            part.first_page = first;
            part.pages = pages;
            part.set_untouched_end(first + pages - std::clamp(untouched, first, first + pages));
        };
        const auto keep = [&](Span* rest, PageNumber first, PageCount pages) {
            if (rest == nullptr) return;
            rest->take_content(extent);
            reduce(*rest, first, pages);
            add(*rest, extent.kind);
        };
        keep(front, extent.first_page, before);
        keep(back, run.first + run.count, after);
        reduce(extent, run.first, run.count);
        return true;
    }
    /// Isolates the whole granules of cold extents. Returns their pages. Extents are visited from
    /// the largest size down, a limited number at a time. Extents without a whole granule may fill
    /// that number and hide others of their size, which then stay.
    std::size_t isolate_cold_granules(SpanList& isolated) noexcept {
        std::size_t pages = 0;
        std::array<Span*, 64> found;
        for (;;) {
            unsigned count = 0;
            cold_.for_the_largest(found.size(), [&](Span& extent) {
                if (granules_in(extent).count != 0) found[count++] = &extent;
            });
            if (count == 0) return pages;
            for (unsigned i = 0; i != count; ++i) {
                Span& extent = *found[i];
                if (!isolate(extent, granules_in(extent))) return pages;
                isolated.push_back(extent);
                pages += extent.pages;
            }
        }
    }

    /// Makes a removed extent a span in use, or sets the entries of one that became longer.
    void mark_in_use(Span& span, PageKind kind) noexcept {
        span.kind = kind;
        set_entries(span, PageEntry(&span, pool_number_, kind));
    }
    void clear_entries(Span& span) noexcept { set_entries(span, PageEntry()); }
    /// Adds the first pages of the hot extent behind a span in use to the span.
    void lengthen(Span& span, Span& behind, PageCount pages) noexcept {
        remove(behind);
        space_.map().clear_last(span);
        span.pages += pages;
        span.clean = false;
        span.huge = span.huge && behind.huge;
        behind.first_page += pages;
        behind.set_untouched_end(std::min(behind.untouched_end(), behind.pages - pages));
        behind.pages -= pages;
        if (behind.pages != 0) {
            add(behind, PageKind::extent_hot);
        } else {
            records_.destroy(&behind);
        }
        mark_in_use(span, span.kind);
    }
    /// Makes all but the first `pages` pages of a span in use a hot extent. Returns false, and
    /// changes nothing, if there is no memory for a record.
    bool shorten(Span& span, PageCount pages) noexcept {
        Span* const rest = records_.make();
        if (rest == nullptr) return false;
        rest->first_page = span.first_page + pages;
        rest->pages = span.pages - pages;
        rest->huge = span.huge;
        clear_entries(*rest);
        span.pages = pages;
        mark_in_use(span, span.kind);
        add(*rest, PageKind::extent_hot);
        return true;
    }

    /// Notes that all hot extents have been touched.
    void note_touched() noexcept {
        hot_.for_each([](Span& extent) {
            extent.touched = true;
            extent.set_untouched_end(0);
        });
        untouched_pages_ = 0;
    }
    /// The pages of hot extents that take no pages of the system.
    std::size_t untouched_pages() const noexcept { return untouched_pages_; }

    RecordPool<Span>& records() noexcept { return records_; }

private:
    void set_entries(const Span& span, PageEntry entry) noexcept {
        const PageEntry own(&span, pool_number_, span.kind);
        if (own.is_bucket() || own.is_marked())
            return space_.map().set_all({span.first_page, span.pages}, entry);
        space_.map().set_ends(span, entry);
        space_.map().set_granules(span, entry);
    }

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

// Returns a position of 0 pages if the request does not fit there.
inline GrowthPosition position_beside(Extents& extents, Span& cold,
                                      const PageRequest& request) noexcept {
    const Span* const left = extents.find(cold.first_page - 1, PageKind::extent_hot);
    const Span* const right = extents.find(cold.end_page(), PageKind::extent_hot);
    Span joined;
    joined.first_page = left == nullptr ? cold.first_page : left->first_page;
    joined.pages = (right == nullptr ? cold.end_page() : right->end_page()) - joined.first_page;
    const PageNumber begin = ExtentBins::position_in(joined, request.pages, request.alignment);
    const PageNumber first = std::max(begin, cold.first_page);
    const PageNumber end = std::min(begin + request.pages, cold.end_page());
    return {&cold, first, begin == joined.end_page() ? 0 : end - first};
}

/// Returns the position at which the fewest pages have to be committed for a request. If there is
/// none, its extent is nullptr. The caller holds the shard's lock. Candidates are the cold extent
/// that fits best and the cold neighbours of the largest hot extents; adjacent hot extents reduce
/// the number of pages.
inline GrowthPosition cheapest_position(Extents& extents, const PageRequest& request) noexcept {
    constexpr unsigned max_looks = 16;
    GrowthPosition best;
    const auto consider = [&](Span* cold) {
        if (cold == nullptr) return;
        const GrowthPosition position = position_beside(extents, *cold, request);
        if (position.pages == 0) return;
        if (best.cold == nullptr || position.pages < best.pages) best = position;
    };
    consider(extents.cold().find(request.pages, request.alignment));
    extents.hot().for_the_largest(max_looks, [&](Span& hot) {
        consider(extents.find(hot.first_page - 1, PageKind::extent_cold));
        consider(extents.find(hot.end_page(), PageKind::extent_cold));
    });
    return best;
}

constexpr PageCount room_for_move(PageCount pages) noexcept {
    return pages + granule_pages - 1;
}
/// Returns where a moved block of `pages` pages is to begin in a cold extent, which has at least
/// `room_for_move(pages)`: with room to grow behind it, and at the same offset in a huge page as
/// `from`. The system then moves page tables instead of single entries.
inline GrowthPosition position_for_move(Span& cold, PageRun from, PageCount pages) noexcept {
    const PageCount spare = cold.pages - room_for_move(pages);
    const PageNumber earliest = cold.first_page + (spare > 2 * pages ? spare / 2 : 0);
    return {&cold, earliest + (from.first - earliest) % granule_pages, pages};
}

}  // namespace tensorpool::pages
