#pragma once

/// @file
/// Memory over time, thinned to as many moments as a person can tell apart.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "inspect/level.hpp"

namespace tensorpool::command::inspect {

/// The moment of most bytes alive in a stretch of time.
struct Moment {
    std::uint64_t time_ns = 0;
    Level level;
    std::vector<std::uint64_t> by_source;  ///< bytes alive, as Timeline::sources names them
    std::vector<std::uint64_t> by_scope;
};

struct Timeline {
    std::vector<std::string> sources;  ///< the largest, each by its own peak; the last: all others
    std::vector<std::string> scopes;
    std::vector<Moment> moments;  ///< of stretches of the same length
    Moment peak;
    std::uint32_t peak_call = Life::none;      ///< none: before the first call
    bool tells_held = false;                   ///< whether levels say what was held
    std::uint64_t most_held_bytes = 0;         ///< at any time
    std::vector<std::uint64_t> process_peaks;  ///< bytes alive, of each process by itself
};

/// Over `stretches` stretches of time, at least 1; fewer where there are not so many nanoseconds.
/// The recording must have a call.
Timeline timeline_of(const History& history, const Groups& sources, const Groups& scopes,
                     std::size_t stretches);

}  // namespace tensorpool::command::inspect
