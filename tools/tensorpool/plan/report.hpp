#pragma once

/// @file
/// What `tensorpool plan` prints.

#include <cstdint>
#include <string>

#include "common/units.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

struct Outcome {
    std::string file;
    std::string origin;  ///< as Buffers::origin
    std::size_t buffers = 0;
    MemoryPlan plan;
    bool checked = false;              ///< the file's own plan was looked at, nothing planned
    double seconds = 0;                ///< that planning took
    std::uint64_t capacity_bytes = 0;  ///< that it is to fit into; 0: not asked
};

/// How far the peak is above the lower bound, as a part of that; 0 where that is 0.
double gap_of(const MemoryPlan& plan) noexcept;
/// "0%", "0.0123%", "12.3%"; of less than that the bytes: "64 B".
std::string gap_text(std::uint64_t peak_bytes, std::uint64_t lower_bound_bytes);
inline bool fits(const Outcome& outcome) noexcept {
    return outcome.capacity_bytes == 0 || outcome.plan.peak_bytes <= outcome.capacity_bytes;
}

/// Lines for people, the last without its end.
std::string report_text(const Outcome& outcome, Sizes sizes);
/// One line of JSON.
std::string report_json(const Outcome& outcome);

}  // namespace tensorpool::command::planning
