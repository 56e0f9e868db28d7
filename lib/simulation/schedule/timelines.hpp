#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulation/hazards/vector_clock.hpp"

namespace tensorpool::device {

/// A sequence of operations, by its index in vector clocks.
struct Timeline {
    std::uint32_t number = 0;
    std::uint64_t tick = 0;  // of the last operation
};

/// Hands out timeline numbers. The number of an ended stream is reused, continuing at its last
/// tick, once the host has seen all of that stream's work complete. This keeps the clocks short.
class Timelines {
public:
    Timeline take(const VectorClock& host) {
        for (std::size_t i = 0; i < ended_.size(); ++i) {
            const Timeline ended = ended_[i];
            if (host[ended.number] < ended.tick) continue;
            ended_[i] = ended_.back();
            ended_.pop_back();
            return ended;
        }
        return {made_++, 0};
    }
    void give(Timeline timeline) { ended_.push_back(timeline); }

private:
    std::uint32_t made_ = 0;
    std::vector<Timeline> ended_;
};

}  // namespace tensorpool::device
