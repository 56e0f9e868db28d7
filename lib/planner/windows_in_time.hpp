#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "planner/offset_list.hpp"
#include "planner/problem.hpp"

namespace tensorpool::planner {

/// All placed buffers, as windows of time see them: windows of one level are equally long and
/// overlap by half, those of the next twice as long, and the highest holds all of time. So a buffer
/// finds a window that it lies in and that is hardly longer than four times its life, or than the
/// shortest; only what is alive in that one can be in its way.
class TimeWindows {
public:
    explicit TimeWindows(const Problem& problem);

    void add(const Placed& placed);
    /// `placed` was added.
    void remove(const Placed& placed);
    /// The window for a buffer: all that is alive with it is in there.
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
