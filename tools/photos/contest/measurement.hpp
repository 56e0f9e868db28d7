#pragma once

/// @file
/// The resource usage of a run.

#include <cstdint>
#include <vector>

struct rusage;

namespace tensorpool::photos {

struct Measurement {
    double cpu_seconds = 0;         ///< user and system
    std::uint64_t page_faults = 0;  ///< minor ones
    std::uint64_t peak_bytes = 0;   ///< resident
};

/// Converts the result of wait4 for a process that has ended.
Measurement to_measurement(const rusage& usage);

/// Returns the median of each value; for an even number of runs, the mean of the two in the middle.
/// All zeros if there are no runs.
Measurement median(const std::vector<Measurement>& runs);

}  // namespace tensorpool::photos
