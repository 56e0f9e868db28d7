#include "formats/trace/ranges.hpp"

#include <algorithm>
#include <iterator>

namespace tensorpool::command::trace {

RangeSet::Ends::iterator RangeSet::erase(Ends::iterator at) {
    bytes_ -= at->second - at->first;
    return ends_.erase(at);
}

void RangeSet::insert(Range range) {
    ends_.emplace(range.begin, range.end);
    bytes_ += range.bytes();
}

bool RangeSet::add(Range range) {
    if (range.begin == range.end) return false;
    auto at = ends_.upper_bound(range.begin);
    if (at != ends_.begin() && std::prev(at)->second >= range.begin) --at;
    // Most blocks reuse the addresses of earlier ones.
    if (at != ends_.end() && at->first <= range.begin && at->second >= range.end) return true;
    bool touched = false;
    while (at != ends_.end() && at->first <= range.end) {
        range.begin = std::min(range.begin, at->first);
        range.end = std::max(range.end, at->second);
        at = erase(at);
        touched = true;
    }
    insert(range);
    return touched;
}

void RangeSet::remove(Range range) {
    if (range.begin == range.end) return;
    auto at = ends_.upper_bound(range.begin);
    if (at != ends_.begin() && std::prev(at)->second > range.begin) --at;
    while (at != ends_.end() && at->first < range.end) {
        const auto [begin, end] = *at;
        at = erase(at);
        if (begin < range.begin) insert({begin, range.begin});
        if (end > range.end) insert({range.end, end});
    }
}

bool RangeSet::contains(std::uint64_t address) const {
    const auto after = ends_.upper_bound(address);
    return after != ends_.begin() && std::prev(after)->second > address;
}

std::vector<Range> RangeSet::all() const {
    std::vector<Range> ranges;
    for (const auto& [begin, end] : ends_) ranges.push_back({begin, end});
    return ranges;
}

}  // namespace tensorpool::command::trace
