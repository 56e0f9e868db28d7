#pragma once

/// @file
/// The analysis of a recording for `tensorpool inspect`, and its reports as text, JSON and HTML.

#include <functional>

#include "common/table.hpp"
#include "common/units.hpp"
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

struct Planned {
    bool made = false;      ///< false: the sizes in a damaged file exceed any memory
    bool searched = false;  ///< searched after the greedy orders, for at most a fifth of a second
    std::uint64_t peak_bytes = 0;
    std::uint64_t lower_bound_bytes = 0;
    bool optimal = false;
    PlanMethod method = PlanMethod::none;
};

/// Plans all blocks in one block of memory, each aligned to 64 bytes as in a pool, or as requested
/// if that is more. For more than 20,000 blocks it uses only greedy orders, so that the report is
/// not delayed.
Planned plan_of(const History& history);

/// The blocks with a lifetime of at least `from`, and below the next row's `from`. Rows are powers
/// of ten.
struct LifetimeRow {
    std::uint64_t from = 0;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

/// Histograms of lifetimes, for blocks whose beginning and end were both recorded. A block that was
/// resized in place counts once. The first row is from 0; the last has no upper limit.
struct Lifetimes {
    std::vector<LifetimeRow> by_time;   ///< in nanoseconds, the second row from 1 µs
    std::vector<LifetimeRow> by_calls;  ///< in calls of all threads, the second row from 10
};
Lifetimes lifetimes_of(const History& history);

/// All requests of one size.
struct SizeRow {
    std::uint64_t bytes = 0;  ///< size of each request
    std::uint64_t requests = 0;
    std::uint64_t total() const noexcept { return bytes * requests; }
};

struct ProcessRow {
    trace::RecordedProcess process;
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t peak_bytes = 0;  ///< maximum alive at once in this process
};

/// Totals over all processes.
struct Totals {
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t allocations = 0;
    std::uint64_t allocated_bytes = 0;  ///< requested
    std::uint64_t refusals = 0;
    std::uint64_t duration_ns = 0;  ///< from the first call to the last
    std::uint64_t dropped = 0;
    std::uint64_t cut_bytes = 0;
};

/// The blocks alive at some moment, by source, scope and call site.
struct Holdings {
    std::vector<Share> by_source;
    std::vector<Share> by_scope;
    Sites by_site;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

struct Analysis {
    Totals totals;
    std::vector<ProcessRow> processes;
    Timeline timeline;
    Holdings at_peak;
    Planned planned;                ///< for all blocks of all processes
    Holdings left;                  ///< at the end of processes whose recording is complete
    bool any_ended = false;         ///< whether any recording has such an end
    std::uint64_t gone_blocks = 0;  ///< blocks in use when their pool ended
    std::uint64_t gone_bytes = 0;
    std::vector<SizeRow> sizes_by_bytes;
    std::vector<SizeRow> sizes_by_requests;
    Lifetimes lifetimes;
    std::vector<std::string> code_problems;  ///< the reasons why frames have no names
};

/// Analyses a recording. `top` is the maximum number of sizes and call sites, at least 1.
Analysis analyse(const Recording& recording, std::size_t top);

struct Fact {
    std::string name;
    std::string value;
    std::string note;  ///< "": none
};

struct Section {
    std::string title;
    std::string note;  ///< sentences; "": none
    Table table;       ///< with texts of the trace that are not yet escaped
    /// Detail lines of each row; empty if there are none.
    std::vector<std::vector<std::string>> details;
};

/// Returns the facts, the most important first.
std::vector<Fact> facts_of(const Analysis& analysis, Sizes sizes);
/// Returns sentences about what makes the values inexact.
std::vector<std::string> doubts_of(const Analysis& analysis);
/// Returns the tables that have rows. `top` is the maximum number of rows in long tables.
std::vector<Section> sections_of(const Analysis& analysis, Sizes sizes, std::size_t top);

std::string text_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);
/// Returns one line of JSON without a newline; sizes are in bytes, times in nanoseconds.
std::string json_report(const Analysis& analysis);
std::string html_report(const Analysis& analysis, const std::string& path, Sizes sizes,
                        std::size_t top);

}  // namespace tensorpool::command::inspect
