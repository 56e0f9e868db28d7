#pragma once

/// @file
/// All that `tensorpool inspect` tells of a recording.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "inspect/history.hpp"
#include "inspect/planned.hpp"
#include "inspect/sites.hpp"
#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

/// How long blocks lived, in powers of ten: those of at least `from`, and less than the next row's.
struct LifetimeRow {
    std::uint64_t from = 0;
    std::uint64_t blocks = 0;
    std::uint64_t bytes = 0;
};

/// Of blocks whose beginning and end were both recorded; a block that was resized where it stands
/// is one. The first row is from 0, the last holds all that is longer.
struct Lifetimes {
    std::vector<LifetimeRow> by_time;   ///< in nanoseconds, the second row from 1 us
    std::vector<LifetimeRow> by_calls;  ///< in calls of all threads, the second row from 10
};
Lifetimes lifetimes_of(const History& history);

/// All requests of one size.
struct SizeRow {
    std::uint64_t bytes = 0;  ///< of each
    std::uint64_t requests = 0;
    std::uint64_t total() const noexcept { return bytes * requests; }
};

/// The `most` sizes that came to most bytes, and those that were asked for most often, the largest
/// first. What was made before the recording is not among them.
std::vector<SizeRow> largest_by_bytes(const History& history, std::size_t most);
std::vector<SizeRow> largest_by_requests(const History& history, std::size_t most);

struct ProcessRow {
    trace::RecordedProcess process;
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t peak_bytes = 0;  ///< alive at once, of this process by itself
};

/// Sums over all processes.
struct Totals {
    std::uint64_t threads = 0;
    std::uint64_t calls = 0;
    std::uint64_t allocations = 0;
    std::uint64_t allocated_bytes = 0;  ///< asked for
    std::uint64_t refusals = 0;
    std::uint64_t duration_ns = 0;  ///< from the first call to the last
    std::uint64_t dropped = 0;
    std::uint64_t cut_bytes = 0;
};

/// What was alive at some moment, and whose it was.
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
    Planned planned;                ///< of all blocks, of all processes
    Holdings left;                  ///< at the end of recordings that ended in order
    bool any_ended = false;         ///< whether there is such an end
    std::uint64_t gone_blocks = 0;  ///< in use when their pool ended
    std::uint64_t gone_bytes = 0;
    std::vector<SizeRow> sizes_by_bytes;
    std::vector<SizeRow> sizes_by_requests;
    Lifetimes lifetimes;
    std::vector<std::string> code_problems;  ///< why frames have no names
};

/// `top`: how many sizes and call sites, at least 1.
Analysis analyse(const Recording& recording, std::size_t top);

}  // namespace tensorpool::command::inspect
