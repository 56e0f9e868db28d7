#include "models/page_ranges.hpp"

namespace tensorpool::files {

void PageRanges::add(PageRange range) noexcept {
    if (range.is_empty()) return;
    bytes_ += range.size();
    const auto next = std::find_if(ranges_.begin(), ranges_.end(), [&](const PageRange& known) {
        return known.begin >= range.end;
    });
    const bool joins_next = next != ranges_.end() && next->begin == range.end;
    const bool joins_last = next != ranges_.begin() && std::prev(next)->end == range.begin;
    if (joins_last) {
        std::prev(next)->end = joins_next ? next->end : range.end;
        if (joins_next) ranges_.erase(next);
    } else if (joins_next) {
        next->begin = range.begin;
    } else {
        ranges_.insert(next, range);
    }
}

}  // namespace tensorpool::files
