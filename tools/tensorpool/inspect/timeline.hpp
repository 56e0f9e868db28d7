#pragma once

/// @file
/// The memory of a recording over time, and what holds it: sources, scopes and call sites.

#include <cmath>
#include <functional>
#include <numeric>

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
    Groups(const History& history, GroupBy by) : history_(history), by_(by) {
        std::map<std::string, std::uint32_t> known;
        const auto number_of = [&](std::string name) {
            const auto [at, is_new] =
                known.try_emplace(std::move(name), static_cast<std::uint32_t>(names_.size()));
            if (is_new) names_.push_back(at->first);
            return at->second;
        };
        for (const trace::RecordedSource& source : history.recording().sources) {
            const bool has_kind = by == GroupBy::source;
            group_of_source_.push_back(number_of(has_kind ? source.name_and_kind() : source.name));
        }
        // The brackets distinguish these from the names of scopes.
        before_ = number_of("[before the recording]");
        outside_ = number_of("[outside of scopes]");
    }

    std::size_t count() const noexcept { return names_.size(); }
    const std::string& name(std::size_t group) const noexcept { return names_[group]; }
    std::uint32_t of(std::size_t lifetime) const noexcept {
        if (by_ == GroupBy::source) return group_of_source_[history_.lifetimes()[lifetime].source];
        const BlockFacts& facts = history_.facts(lifetime);
        if (facts.born == BlockFacts::none) return before_;
        return facts.scope == BlockFacts::none ? outside_ : group_of_source_[facts.scope];
    }

private:
    const History& history_;
    GroupBy by_;
    std::vector<std::string> names_;
    std::vector<std::uint32_t> group_of_source_;
    std::uint32_t before_ = 0;   // by scope: the group of blocks from before the recording
    std::uint32_t outside_ = 0;  // by scope: the group of blocks outside of all scopes
};

struct Share {
    std::string name;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;        ///< requested
    std::uint64_t block_bytes = 0;  ///< including rounding
};

using ChosenLives = std::function<bool(const Lifetime&)>;
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
    void change(Range range, bool added) {
        if (range.begin == range.end) return;
        const std::uint64_t first = range.begin / page_bytes_;
        const std::uint64_t last = (range.end - 1) / page_bytes_;
        const bool whole_first = range.begin % page_bytes_ == 0;
        const bool whole_last = range.end % page_bytes_ == 0;
        if (first == last) {
            if (whole_first && whole_last) {
                inner_ += added ? 1 : std::uint64_t{0} - 1;
            } else {
                change_page(first, added);
            }
            return;
        }
        if (!whole_first) change_page(first, added);
        if (!whole_last) change_page(last, added);
        const std::uint64_t inner =
            last - first + 1 - (whole_first ? 0U : 1U) - (whole_last ? 0U : 1U);
        inner_ += added ? inner : 0 - inner;
    }
    void change_page(std::uint64_t page, bool added) {
        std::uint32_t& blocks = shared_[page];
        blocks += added ? 1U : 0U - 1U;
        if (blocks == 0) shared_.erase(page);
    }

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

// The number of moments in the timeline: as fine as a chart of 1,000 pixels can show.
inline constexpr std::size_t usual_stretches = 480;

struct StackSum {
    double bytes = 0;
    double blocks = 0;
    std::uint64_t samples = 0;
};
using StackSums = std::unordered_map<std::uint32_t, StackSum>;

// As in tcmalloc, a block of n bytes is sampled with probability 1 - exp(-n / interval).
inline double blocks_for(std::uint64_t bytes, std::uint64_t interval) {
    if (interval == 0 || bytes == 0) return 1;
    return -1 / std::expm1(-static_cast<double>(bytes) / static_cast<double>(interval));
}

inline StackSums add_up(const History& history, const ChosenLives& chosen) {
    StackSums sums;
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        const std::uint32_t stack = history.facts(i).stack;
        if (stack == 0 || !chosen(lifetime)) continue;
        const double blocks = blocks_for(
            lifetime.bytes, history.recording().processes[lifetime.process].stack_interval);
        StackSum& sum = sums[stack];
        sum.blocks += blocks;
        sum.bytes += blocks * static_cast<double>(lifetime.bytes);
        ++sum.samples;
    }
    return sums;
}

inline std::string site_name(const std::vector<trace::RecordedFrame>& stack, FrameNames& names) {
    std::vector<const FrameName*> frames;
    for (const trace::RecordedFrame frame : stack) frames.push_back(&names.name(frame));
    const FrameName* const line = line_of_program(frames);
    return line == nullptr ? "?" : to_short_text(*line);
}

inline std::vector<std::string> texts_of(const std::vector<trace::RecordedFrame>& stack,
                                         FrameNames& names) {
    std::vector<std::string> texts;
    for (const trace::RecordedFrame frame : stack) texts.push_back(to_text(names.name(frame)));
    return texts;
}

struct SiteSum {
    StackSum all;
    std::uint32_t largest_stack = 0;
    double largest_bytes = 0;
};

// Sorts by the number of the stack, so that the result does not depend on the hash table's order.
inline std::vector<std::pair<std::uint32_t, StackSum>> in_order(const StackSums& sums) {
    std::vector<std::pair<std::uint32_t, StackSum>> ordered(sums.begin(), sums.end());
    std::ranges::sort(ordered, {}, &std::pair<std::uint32_t, StackSum>::first);
    return ordered;
}

inline Site to_site(const std::string& name, const SiteSum& sum, const Recording& recording,
                    FrameNames& names) {
    return {name, sum.all.bytes, sum.all.blocks, sum.all.samples,
            texts_of(recording.stacks[sum.largest_stack], names)};
}

// The number of colours that people can distinguish; one of them is for all other groups.
inline constexpr std::size_t max_shown = 8;

struct GroupPeaks {
    explicit GroupPeaks(std::size_t groups) : now(groups), max(groups) {}
    /// Adds `bytes`, which may be a negative number modulo 2^64.
    void add(std::uint32_t group, std::uint64_t bytes) {
        now[group] += bytes;
        max[group] = std::max(max[group], now[group]);
    }

    std::vector<std::uint64_t> now, max;
};

struct Peaks {
    GroupPeaks sources, scopes, processes;
};

inline Peaks find_peaks(const History& history, const Groups& sources, const Groups& scopes) {
    Peaks peaks{GroupPeaks(sources.count()), GroupPeaks(scopes.count()),
                GroupPeaks(history.recording().processes.size())};
    const auto change = [&](std::uint32_t lifetime, std::uint64_t bytes) {
        peaks.sources.add(sources.of(lifetime), bytes);
        peaks.scopes.add(scopes.of(lifetime), bytes);
        peaks.processes.add(history.lifetimes()[lifetime].process, bytes);
    };
    history.walk([&](std::uint32_t i) { change(i, history.lifetimes()[i].bytes); },
                 [&](std::uint32_t i) { change(i, 0 - history.lifetimes()[i].bytes); });
    return peaks;
}

/// The groups that are shown individually, and one row for all others.
class ShownGroups {
public:
    ShownGroups(const Groups& groups, const GroupPeaks& peaks) : groups_(groups) {
        std::vector<std::size_t> order(groups.count());
        std::iota(order.begin(), order.end(), 0);
        std::erase_if(order, [&](std::size_t group) { return peaks.max[group] == 0; });
        std::ranges::stable_sort(order, std::ranges::greater{},
                                 [&](std::size_t group) { return peaks.max[group]; });
        const bool all = order.size() <= max_shown;
        if (!all) order.resize(max_shown - 1);
        row_.assign(groups.count(), static_cast<std::uint32_t>(order.size()));
        for (const std::size_t group : order) {
            row_[group] = static_cast<std::uint32_t>(names_.size());
            names_.push_back(groups.name(group));
        }
        if (!all) names_.push_back("[others]");
        // Groups that never have blocks need a row too.
        bytes_.assign(order.size() + 1, 0);
    }
    std::uint64_t& of(std::size_t lifetime) { return bytes_[row_[groups_.of(lifetime)]]; }
    const std::vector<std::string>& names() const { return names_; }
    std::span<const std::uint64_t> bytes() const { return std::span(bytes_).first(names_.size()); }

private:
    const Groups& groups_;
    std::vector<std::uint32_t> row_;
    std::vector<std::string> names_;
    std::vector<std::uint64_t> bytes_;
};

/// Keeps the moment with the most bytes alive of each stretch of time.
class Thinning {
public:
    Thinning(const History& history, std::size_t stretches)
        : first_(history.first_ns()),
          length_((history.last_ns() - first_) / stretches + 1),
          moments_(stretches) {}

    /// Called before a change at `time`: the state `now` held until then. Returns the time at which
    /// the next stretch begins.
    std::uint64_t reach(std::uint64_t time, const Moment& now) {
        const std::size_t stretch = (time - first_) / length_;
        while (begun_ <= stretch) {
            moments_[begun_] = now;
            moments_[begun_].time_ns = first_ + begun_ * length_;
            ++begun_;
        }
        return first_ + begun_ * length_;
    }
    /// Called after a change. Calls `now` only if the moment is kept.
    template <class Now>
    void see(std::uint64_t time, std::uint64_t alive_bytes, Now now) {
        Moment& kept = moments_[begun_ - 1];
        if (alive_bytes <= kept.level.alive_bytes) return;
        now(kept);
        kept.time_ns = time;
    }
    /// Returns the moments. There are fewer than stretches if there are not as many nanoseconds.
    std::vector<Moment> take() {
        moments_.resize(begun_);
        return std::move(moments_);
    }

private:
    std::uint64_t first_;
    std::uint64_t length_;
    std::size_t begun_ = 0;
    std::vector<Moment> moments_;
};

/// The level of all processes together, updated event by event.
class LevelMeter {
public:
    explicit LevelMeter(const History& history)
        : history_(history),
          used_(history.recording().processes.size()),
          held_(history.recording().sources.size()) {
        for (const trace::RecordedProcess& process : history.recording().processes) {
            pages_.emplace_back(std::max<std::uint64_t>(process.page_bytes, 1));
        }
    }

    void begin(std::size_t lifetime) {
        ++level_.blocks;
        level_.alive_bytes += history_.lifetimes()[lifetime].bytes;
        level_.block_bytes += history_.facts(lifetime).block_bytes;
        change_pages(lifetime, true);
        RangeSet& used = used_[history_.lifetimes()[lifetime].process];
        const std::uint64_t before = used.bytes();
        used.add(history_.range(lifetime));
        level_.used_bytes += used.bytes() - before;
    }
    void end(std::size_t lifetime) {
        --level_.blocks;
        level_.alive_bytes -= history_.lifetimes()[lifetime].bytes;
        level_.block_bytes -= history_.facts(lifetime).block_bytes;
        change_pages(lifetime, false);
    }
    void hold(const trace::CapacityChange& change) {
        level_.held_bytes += change.bytes - held_[change.source];
        held_[change.source] = change.bytes;
    }
    const Level& level() const noexcept { return level_; }

private:
    void change_pages(std::size_t lifetime, bool added) {
        PagesInUse& pages = pages_[history_.lifetimes()[lifetime].process];
        const std::uint64_t before = pages.bytes();
        added ? pages.add(history_.range(lifetime)) : pages.remove(history_.range(lifetime));
        level_.page_bytes += pages.bytes() - before;
    }

    const History& history_;
    Level level_;
    std::vector<PagesInUse> pages_;
    std::vector<RangeSet> used_;
    std::vector<std::uint64_t> held_;  // for each source
};

class TimelineMaker {
public:
    TimelineMaker(const History& history, const Groups& sources, const Groups& scopes,
                  std::size_t stretches)
        : history_(history),
          meter_(history),
          thinning_(history, stretches),
          peaks_(find_peaks(history, sources, scopes)),
          sources_(sources, peaks_.sources),
          scopes_(scopes, peaks_.scopes) {}

    Timeline make() {
        hold_until(history_.first_ns());
        history_.walk([this](std::uint32_t lifetime) { begin(lifetime); },
                      [this](std::uint32_t lifetime) { end(lifetime); });
        follow(history_.last_ns());
        hold_until(UINT64_MAX);
        timeline_.tells_held = !capacities().empty();
        timeline_.sources = sources_.names();
        timeline_.scopes = scopes_.names();
        timeline_.moments = thinning_.take();
        timeline_.process_peaks = peaks_.processes.max;
        return std::move(timeline_);
    }

private:
    void begin(std::uint32_t lifetime) {
        const Lifetime& block = history_.lifetimes()[lifetime];
        const std::uint64_t time = history_.time_of(block.begin);
        follow(time);
        sources_.of(lifetime) += block.bytes;
        scopes_.of(lifetime) += block.bytes;
        meter_.begin(lifetime);
        const std::uint64_t alive = meter_.level().alive_bytes;
        thinning_.see(time, alive, [this](Moment& moment) { take(moment); });
        if (alive <= timeline_.peak.level.alive_bytes) return;
        take(timeline_.peak);
        timeline_.peak.time_ns = time;
        timeline_.peak_call = block.begin;
    }
    void end(std::uint32_t lifetime) {
        const Lifetime& block = history_.lifetimes()[lifetime];
        follow(history_.time_of(block.end));
        sources_.of(lifetime) -= block.bytes;
        scopes_.of(lifetime) -= block.bytes;
        meter_.end(lifetime);
    }
    const std::vector<trace::CapacityChange>& capacities() const {
        return history_.recording().capacities;
    }
    // Handles all events up to `time` except those of blocks.
    void follow(std::uint64_t time) {
        while (next_capacity_ < capacities().size() &&
               capacities()[next_capacity_].time_ns <= time) {
            const std::uint64_t changed = capacities()[next_capacity_].time_ns;
            reach(changed);
            hold_until(changed);
        }
        reach(time);
    }
    void hold_until(std::uint64_t time) {
        for (; next_capacity_ < capacities().size(); ++next_capacity_) {
            const trace::CapacityChange& change = capacities()[next_capacity_];
            if (change.time_ns > time) return;
            meter_.hold(change);
            timeline_.max_held_bytes =
                std::max(timeline_.max_held_bytes, meter_.level().held_bytes);
        }
    }
    void reach(std::uint64_t time) {
        if (time < next_stretch_) return;
        Moment now;
        take(now);
        next_stretch_ = thinning_.reach(time, now);
    }
    void take(Moment& moment) const {
        moment.level = meter_.level();
        moment.by_source.assign(sources_.bytes().begin(), sources_.bytes().end());
        moment.by_scope.assign(scopes_.bytes().begin(), scopes_.bytes().end());
    }

    const History& history_;
    LevelMeter meter_;
    Thinning thinning_;
    std::uint64_t next_stretch_ = 0;
    std::size_t next_capacity_ = 0;
    Peaks peaks_;
    ShownGroups sources_, scopes_;
    Timeline timeline_;
};

/// Returns the share of each group in the blocks for which `chosen` is true, the largest first.
/// Empty groups are left out.
inline std::vector<Share> shares_of(const History& history, const Groups& groups,
                                    const ChosenLives& chosen) {
    std::vector<Share> shares(groups.count());
    for (std::size_t i = 0; i < history.lifetimes().size(); ++i) {
        const Lifetime& lifetime = history.lifetimes()[i];
        if (!chosen(lifetime)) continue;
        Share& share = shares[groups.of(i)];
        ++share.blocks;
        share.bytes += lifetime.bytes;
        share.block_bytes += history.facts(i).block_bytes;
    }
    for (std::size_t group = 0; group < shares.size(); ++group) {
        shares[group].name = groups.name(group);
    }
    std::erase_if(shares, [](const Share& share) { return share.blocks == 0; });
    std::ranges::stable_sort(shares, std::ranges::greater{}, &Share::bytes);
    return shares;
}

/// Returns whether the block is alive at the end of a process whose recording is complete.
inline bool is_left(const History& history, const Lifetime& lifetime) noexcept {
    return lifetime.end == Lifetime::none && history.recording().processes[lifetime.process].ended;
}

/// Returns the call sites of the blocks for which `chosen` is true, at most `max_sites` of them.
inline Sites sites_of(const History& history, FrameNames& names, std::size_t max_sites,
                      const ChosenLives& chosen) {
    const Recording& recording = history.recording();
    std::unordered_map<std::string, SiteSum> by_name;
    Sites sites;
    for (const auto& [stack, sum] : in_order(add_up(history, chosen))) {
        SiteSum& site = by_name[site_name(recording.stacks[stack], names)];
        site.all.bytes += sum.bytes;
        site.all.blocks += sum.blocks;
        site.all.samples += sum.samples;
        if (sum.bytes > site.largest_bytes) {
            site.largest_bytes = sum.bytes;
            site.largest_stack = stack;
        }
        sites.samples += sum.samples;
        sites.bytes += sum.bytes;
    }
    std::vector<std::pair<std::string, SiteSum>> ordered(by_name.begin(), by_name.end());
    std::ranges::sort(ordered, [](const auto& one, const auto& other) {
        return one.second.all.bytes != other.second.all.bytes
                   ? one.second.all.bytes > other.second.all.bytes
                   : one.first < other.first;
    });
    ordered.resize(std::min(ordered.size(), max_sites));
    for (const auto& [name, sum] : ordered) {
        sites.largest.push_back(to_site(name, sum, recording, names));
    }
    return sites;
}

/// Divides the time into `stretches` stretches, at least 1; fewer if there are not as many
/// nanoseconds. Requires: the recording has a call.
inline Timeline timeline_of(const History& history, const Groups& sources, const Groups& scopes,
                            std::size_t stretches) {
    return TimelineMaker(history, sources, scopes, stretches).make();
}

}  // namespace tensorpool::command::inspect
