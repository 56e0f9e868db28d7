#include "formats/trace/ranges_used.hpp"

#include <algorithm>
#include <iterator>

namespace tensorpool::command::trace {

void RangesUsed::add(Range range) {
    if (range.begin == range.end) return;
    auto at = ends_.upper_bound(range.begin);
    if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
    // Most blocks reuse the addresses of earlier ones.
    if (at != ends_.end() && at->first <= range.begin && at->second >= range.end) return;
    while (at != ends_.end() && at->first <= range.end) {
        range.begin = std::min(range.begin, at->first);
        range.end = std::max(range.end, at->second);
        bytes_ -= at->second - at->first;
        at = ends_.erase(at);
    }
    ends_.emplace_hint(at, range.begin, range.end);
    bytes_ += range.bytes();
}

std::vector<Range> RangesUsed::all() const {
    std::vector<Range> ranges;
    for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
    return ranges;
}

}  // namespace tensorpool::command::trace
