#pragma once

/// @file
/// Memory over time, reduced to as many moments as a chart can show.

#include <functional>

#include "formats/symbols/frame_names.hpp"
#include "formats/trace/history.hpp"

namespace tensorpool::command::inspect {

using trace::BlockFacts;
using trace::History;
using trace::Lifetime;
using trace::Recording;

enum class GroupBy { source, scope };

/// The names of the groups, and the group of each block. Sources of the same name and kind are one
/// group, also across processes.
class Groups {
public:
    Groups(const History& history, GroupBy by);

    std::size_t count() const noexcept { return names_.size(); }
    const std::string& name(std::size_t group) const noexcept { return names_[group]; }
    std::uint32_t of(std::size_t lifetime) const noexcept;

private:
    const History& history_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> group_of_source_;
    std::uint32_t before_ = 0;   // by scope: the group of blocks from before the recording
    std::uint32_t outside_ = 0;  // by scope: the group of blocks outside of all scopes
};

/// The blocks of one group at some moment.
struct Share {
    std::string name;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;        ///< requested
    std::uint64_t block_bytes = 0;  ///< including rounding
};

using ChosenLives = std::function<bool(const Lifetime&)>;

/// Returns the share of each group in the blocks for which `chosen` is true, the largest first.
/// Empty groups are left out.
std::vector<Share> shares_of(const History& history, const Groups& groups,
                             const ChosenLives& chosen);
/// Returns whether the block is alive at the end of a process whose recording is complete.
bool is_left(const History& history, const Lifetime& lifetime) noexcept;

using symbols::FrameName;
using symbols::FrameNames;

/// A call site and its blocks alive, estimated from samples. Each sample stands for the average
/// number of requests of its size until one of them is sampled.
struct Site {
    std::string name;
    double bytes = 0;
    double blocks = 0;
    std::uint64_t samples = 0;
    std::vector<std::string> stack;  ///< of its largest sample, innermost first
};

struct Sites {
    std::vector<Site> largest;  ///< the largest first
    std::uint64_t samples = 0;  ///< samples of all sites, including those left out
    double bytes = 0;
};

/// Returns the call sites of the blocks for which `chosen` is true, at most `max_sites` of them.
Sites sites_of(const History& history, FrameNames& names, std::size_t max_sites,
               const ChosenLives& chosen);

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
