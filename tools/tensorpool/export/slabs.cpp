#include "export/slabs.hpp"

#include <algorithm>
#include <iterator>

namespace tensorpool::command::export_ {

/// Adds a range, merging it with those it touches. Returns whether there were any.
bool Slabs::join(Ends& ends, Range range) {
    auto at = ends.upper_bound(range.begin);
    if (at != ends.begin() && std::prev(at)->second >= range.begin) --at;
    bool touched = false;
    while (at != ends.end() && at->first <= range.end) {
        range.begin = std::min(range.begin, at->first);
        range.end = std::max(range.end, at->second);
        at = ends.erase(at);
        touched = true;
    }
    ends.emplace_hint(at, range.begin, range.end);
    return touched;
}

void Slabs::add(Range range) {
    if (range.begin == range.end) return;
    join(ever_, range);
    have_grown_ = join(now_, range) || have_grown_;
}

void Slabs::remove(Range range) {
    if (range.begin == range.end) return;
    auto at = now_.upper_bound(range.begin);
    if (at != now_.begin() && std::prev(at)->second > range.begin) --at;
    while (at != now_.end() && at->first < range.end) {
        const auto [begin, end] = *at;
        at = now_.erase(at);
        if (begin < range.begin) now_.emplace(begin, range.begin);
        if (end > range.end) now_.emplace(range.end, end);
    }
}

std::vector<Range> Slabs::all() const {
    std::vector<Range> ranges;
    for (const auto& [begin, end] : now_) ranges.push_back({begin, end});
    return ranges;
}

bool Slabs::has_known(std::uint64_t address) const {
    const auto after = ever_.upper_bound(address);
    return after != ever_.begin() && std::prev(after)->second > address;
}

}  // namespace tensorpool::command::export_
