#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/planner/offset_list.hpp"
#include "plan/planner/problem.hpp"

namespace tensorpool::planner {

/// All placed buffers, indexed by windows of time. The windows of one level have the same length
/// and overlap by half. Those of the next level are twice as long; the highest level covers all
/// slices. For each buffer there is a window that contains its lifetime and is at most about four
/// times as long, or is one of the shortest. Only buffers in that window can be in its way.
class TimeWindows {
public:
    explicit TimeWindows(const Problem& problem);

    void add(const Placed& placed);
    /// Requires: `placed` was added.
    void remove(const Placed& placed);
    /// Returns a window that contains all placed buffers that are alive with `buffer`.
    const OffsetList& around(const Buffer& buffer) const;

private:
    template <class Visit>
    void visit_windows(const Placed& placed, Visit visit);

    /// Window i holds the slices [i, i + 2) << shift.
    struct Level {
        unsigned shift;
        std::vector<OffsetList> windows;
    };
    std::vector<Level> levels_;
};

}  // namespace tensorpool::planner
