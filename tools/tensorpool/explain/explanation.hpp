#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "common/units.hpp"
#include "explain/memory_map.hpp"
#include "formats/profile/named_profile.hpp"

namespace tensorpool::command::explain {

/// A part of a process's resident memory.
struct Row {
    std::string what;
    std::uint64_t bytes = 0;
    std::uint64_t back_bytes = 0;  ///< what can be given back to the system
    std::string why;               ///< what keeps memory that is not in use; "" if that is not ours
    std::string how;               ///< what gives it back; "" if nothing is known to
};

/// What allocated a part of the blocks in use: a call site or a scope.
struct Allocator {
    std::string name;
    std::uint64_t bytes = 0;
};

/// The resident part of the blocks in use of all pools, without rounding.
struct InUse {
    std::uint64_t bytes = 0;
    /// What callers requested for these blocks; more than `bytes` if they were not touched whole.
    std::uint64_t requested_bytes = 0;
    std::uint64_t interval = 0;     ///< the mean distance between samples
    std::vector<Allocator> sites;   ///< estimated; they add up to `bytes` unless there are none
    std::vector<Allocator> scopes;  ///< what ended scopes allocated and did not free
    std::string note;               ///< why there are no sites
};

/// Why the resident memory of a process is what it is. The rows add up to it.
struct Explanation {
    std::uint64_t process = 0;
    std::string name;
    std::uint64_t resident_bytes = 0;
    std::vector<Row> rows;  ///< the largest first; none is empty
    InUse in_use;           ///< divides the rows of blocks in use once more
};

/// Divides the resident memory. `mappings` and `snapshot` were read at about the same time. Memory
/// of pools that is not known to be free counts as blocks in use. `read_word` reads the process.
Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings,
                    const ReadWord& read_word = {});

/// Adds the rows for the memory of pools, of which `resident` bytes are resident, and their blocks
/// in use.
void add_pools(Explanation& to, const ProcessSnapshot& snapshot, std::uint64_t resident);

/// Divides the blocks in use by call site. At most ten sites are named, each with at least 1 % of
/// the resident memory.
void add_sites(Explanation& to, const profile::NamedProfile& named);
/// Sets what scopes hold, with the same limits.
void add_scopes(Explanation& to, const ProcessSnapshot& snapshot);

/// Returns a headline and tables.
std::string to_text(const Explanation& explanation, Sizes sizes);
/// Returns one line of JSON.
std::string to_json(const Explanation& explanation);

}  // namespace tensorpool::command::explain
