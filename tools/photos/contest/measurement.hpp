#pragma once

/// @file
/// What a run took.

#include <cstdint>
#include <vector>

struct rusage;

namespace tensorpool::photos {

struct Measurement {
    double cpu_seconds = 0;         ///< user and system
    std::uint64_t page_faults = 0;  ///< minor ones
    std::uint64_t peak_bytes = 0;   ///< resident
};

/// From what wait4 says of a process that ended.
Measurement to_measurement(const rusage& usage);

/// Of each figure the median; of an even number, the mean of the two in the middle. All zeros for
/// none.
Measurement median(const std::vector<Measurement>& runs);

}  // namespace tensorpool::photos
