#pragma once

#include <cstdint>
#include <vector>

#include "inspect/history.hpp"

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

}  // namespace tensorpool::command::inspect
