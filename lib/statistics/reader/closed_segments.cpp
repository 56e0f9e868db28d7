#include "statistics/reader/closed_segments.hpp"

#include "statistics/reader/segment_finder.hpp"

namespace tensorpool::statistics {

bool ClosedSegments::holds(std::uint64_t process, std::uint64_t now_ns) {
    const std::lock_guard guard(mutex_);
    if (now_ns - cleared_ns_ >= period_ns) {
        std::erase_if(seen_,
                      [&](const auto& one) { return now_ns - one.second.since_ns >= period_ns; });
        cleared_ns_ = now_ns;
    }
    const auto known = seen_.find(process);
    if (known != seen_.end() && now_ns - known->second.since_ns < period_ns) {
        return known->second.holds;
    }
    const bool holds = has_closed_segment(process);
    seen_[process] = {now_ns, holds};
    return holds;
}

}  // namespace tensorpool::statistics
