#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "common/units.hpp"
#include "explain/memory_map.hpp"

namespace tensorpool::command::explain {

/// A part of a process's resident memory.
struct Row {
    std::string what;
    std::uint64_t bytes = 0;
    std::uint64_t back_bytes = 0;  ///< what can be given back to the system
    std::string how;               ///< what gives it back; "" if nothing is known to
};

/// Why the resident memory of a process is what it is. The rows add up to it.
struct Explanation {
    std::uint64_t process = 0;
    std::string name;
    std::uint64_t resident_bytes = 0;
    std::vector<Row> rows;  ///< the largest first; none is empty
};

/// Divides the resident memory. `mappings` and `snapshot` were read at about the same time. Memory
/// of pools that is not known to be free counts as blocks in use.
Explanation explain(const ProcessSnapshot& snapshot, const std::vector<Mapping>& mappings);

/// Returns the rows for the memory of pools, of which `resident` bytes are resident.
std::vector<Row> rows_of_pools(const ProcessSnapshot& snapshot, std::uint64_t resident);

/// Returns a headline and a table, and what gives memory back.
std::string to_text(const Explanation& explanation, Sizes sizes);
/// Returns one line of JSON.
std::string to_json(const Explanation& explanation);

}  // namespace tensorpool::command::explain
