#pragma once

/// @file
/// The analysis of a recording for `tensorpool inspect`.

#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

using trace::History;
using trace::Lifetime;

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

/// Returns up to `max_rows` sizes with the largest sums of bytes, the largest first. Blocks from
/// before the recording are not counted.
std::vector<SizeRow> largest_by_bytes(const History& history, std::size_t max_rows);
/// Returns up to `max_rows` sizes with the most requests, the largest number first. Blocks from
/// before the recording are not counted.
std::vector<SizeRow> largest_by_requests(const History& history, std::size_t max_rows);

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

}  // namespace tensorpool::command::inspect
