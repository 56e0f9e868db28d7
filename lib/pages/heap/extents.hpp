#pragma once

#include <cstddef>

#include "pages/address_space.hpp"
#include "pages/heap/extent_bins.hpp"
#include "pages/record_pool.hpp"
#include "pages/span.hpp"

namespace tensorpool::pages {

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
    void mark_in_use(Span& span, PageKind kind) noexcept;
    /// Clears the entries of a span in use, which is in no list then.
    void clear_entries(Span& span) noexcept;
    /// Adds the first pages of the hot extent behind a span in use to the span.
    void lengthen(Span& span, Span& behind, PageCount pages) noexcept;

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

}  // namespace tensorpool::pages
