#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tensorpool::files {

/// A half-open range of bytes [begin, end) that begins and ends at page boundaries.
struct PageRange {
    std::size_t begin = 0;
    std::size_t end = 0;
    std::size_t size() const noexcept { return end - begin; }
    bool is_empty() const noexcept { return begin >= end; }
    friend bool operator==(const PageRange&, const PageRange&) = default;
};

/// A set of pages.
class PageRanges {
public:
    /// Calls `use` with each range of pages of `range` that are not in the set, in order.
    template <class Use>
    void for_each_missing(PageRange range, const Use& use) const {
        for (const PageRange& known : ranges_) {
            if (known.end <= range.begin) continue;
            if (known.begin >= range.end) break;
            if (range.begin < known.begin) use(PageRange{range.begin, known.begin});
            range.begin = known.end;
        }
        if (!range.is_empty()) use(range);
    }

    /// Makes room for `count` more calls of `add`. Throws std::bad_alloc.
    void reserve_more(std::size_t count) { ranges_.reserve(ranges_.size() + count); }
    /// Adds pages that are not in the set. REQUIRES: `reserve_more` made room.
    void add(PageRange range) noexcept;

    /// Returns the bytes of all pages in the set.
    std::size_t bytes() const noexcept { return bytes_; }

private:
    // Invariant: the ranges are in order, none is empty, and there is a gap between neighbours.
    std::vector<PageRange> ranges_;
    std::size_t bytes_ = 0;
};

}  // namespace tensorpool::files
