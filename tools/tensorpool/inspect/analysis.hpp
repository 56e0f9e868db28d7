#pragma once

/// @file
/// All that `tensorpool inspect` tells of a recording.

#include <cstdint>
#include <string>
#include <vector>

#include "inspect/groups.hpp"
#include "inspect/lifetimes.hpp"
#include "inspect/planned.hpp"
#include "inspect/sites.hpp"
#include "inspect/sizes.hpp"
#include "inspect/timeline.hpp"

namespace tensorpool::command::inspect {

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
