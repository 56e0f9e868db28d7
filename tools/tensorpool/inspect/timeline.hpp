#pragma once

/// @file
/// Memory over time, reduced to as many moments as a chart can show.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/trace/history.hpp"
#include "formats/trace/ranges.hpp"
#include "inspect/groups.hpp"

namespace tensorpool::command::inspect {

using trace::Range;
using trace::range_of;
using trace::RangeSet;

/// Counts the pages that contain a part of any block, which a pool cannot release. Inner pages of a
/// block belong to that block only, so just the pages at its two ends are kept by number.
class PagesInUse {
public:
    explicit PagesInUse(std::uint64_t page_bytes) noexcept : page_bytes_(page_bytes) {}

    void add(Range range) { change(range, true); }
    /// Removes a range. Requires: it was added.
    void remove(Range range) { change(range, false); }
    std::uint64_t bytes() const noexcept { return (inner_ + shared_.size()) * page_bytes_; }

private:
    void change(Range range, bool added);
    void change_page(std::uint64_t page, bool added);

    std::uint64_t page_bytes_;
    std::uint64_t inner_ = 0;                                  // number of inner pages
    std::unordered_map<std::uint64_t, std::uint32_t> shared_;  // blocks that begin or end in a page
};

struct Level {
    std::uint64_t blocks = 0;
    std::uint64_t alive_bytes = 0;  ///< requested; no allocator can need less
    std::uint64_t block_bytes = 0;  ///< including rounding
    std::uint64_t page_bytes = 0;   ///< in pages with a part of any of these blocks
    std::uint64_t used_bytes = 0;   ///< in addresses that any block had so far
    std::uint64_t held_bytes = 0;   ///< held by pools, arenas and scratches; 0 if not recorded
};

/// The level of all processes together, updated event by event.
class LevelMeter {
public:
    explicit LevelMeter(const History& history);

    void begin(std::size_t lifetime);
    void end(std::size_t lifetime);
    void hold(const trace::CapacityChange& change);
    const Level& level() const noexcept { return level_; }
    const std::vector<RangeSet>& used() const noexcept { return used_; }  ///< for each process

private:
    Range address_range(std::size_t lifetime) const;
    void change_pages(std::size_t lifetime, bool added);

    const History& history_;
    Level level_;
    std::vector<PagesInUse> pages_;
    std::vector<RangeSet> used_;
    std::vector<std::uint64_t> held_;  // for each source
};

/// The moment with the most bytes alive in a stretch of time.
struct Moment {
    std::uint64_t time_ns = 0;
    Level level;
    std::vector<std::uint64_t> by_source;  ///< bytes alive, in the order of Timeline::sources
    std::vector<std::uint64_t> by_scope;
};

struct Timeline {
    std::vector<std::string> sources;  ///< the largest by their peaks; the last may be all others
    std::vector<std::string> scopes;
    std::vector<Moment> moments;  ///< one for each stretch of equal length
    Moment peak;
    std::uint32_t peak_call = Lifetime::none;  ///< none: before the first call
    bool tells_held = false;                   ///< whether the recording contains held memory
    std::uint64_t max_held_bytes = 0;          ///< maximum at any time
    std::vector<std::uint64_t> process_peaks;  ///< maximum bytes alive of each process
};

/// Divides the time into `stretches` stretches, at least 1; fewer if there are not as many
/// nanoseconds. Requires: the recording has a call.
Timeline timeline_of(const History& history, const Groups& sources, const Groups& scopes,
                     std::size_t stretches);

}  // namespace tensorpool::command::inspect
