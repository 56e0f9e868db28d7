#pragma once

/// @file
/// Memory over time, thinned to as many moments as a person can tell apart.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "inspect/history.hpp"
#include "inspect/pages_in_use.hpp"
#include "inspect/ranges_used.hpp"

namespace tensorpool::command::inspect {

struct Level {
    std::uint64_t blocks = 0;
    std::uint64_t alive_bytes = 0;  ///< asked for: no allocator can do with less
    std::uint64_t block_bytes = 0;  ///< with rounding
    std::uint64_t page_bytes = 0;   ///< of the pages on which any of these blocks lies
    std::uint64_t used_bytes = 0;   ///< of all addresses where any block lay so far
    std::uint64_t held_bytes = 0;   ///< by pools, arenas and scratches; 0 where it is not told
};

/// The level of all processes together, followed step by step.
class LevelMeter {
public:
    explicit LevelMeter(const History& history);

    void begin(std::size_t life);
    void end(std::size_t life);
    void hold(const trace::CapacityChange& change);
    const Level& level() const noexcept { return level_; }
    const std::vector<RangesUsed>& used() const noexcept { return used_; }  ///< by each process

private:
    Range place_of(std::size_t life) const;
    void change_pages(std::size_t life, bool added);

    const History& history_;
    Level level_;
    std::vector<PagesInUse> pages_;
    std::vector<RangesUsed> used_;
    std::vector<std::uint64_t> held_;  // by each source
};

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
    std::uint64_t max_held_bytes = 0;          ///< at any time
    std::vector<std::uint64_t> process_peaks;  ///< bytes alive, of each process by itself
};

/// Over `stretches` stretches of time, at least 1; fewer where there are not so many nanoseconds.
/// The recording must have a call.
Timeline timeline_of(const History& history, const Groups& sources, const Groups& scopes,
                     std::size_t stretches);

}  // namespace tensorpool::command::inspect
