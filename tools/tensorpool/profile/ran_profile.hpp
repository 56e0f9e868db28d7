#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/heap_profile.hpp>

#include "run/report.hpp"

namespace tensorpool::command::profile {

/// The profile of a program that has ended.
struct RanProfile {
    run::Outcome outcome;
    /// The last profile of the process with the highest peak; nothing if no process used a pool.
    std::optional<HeapProfile> profile;
    std::uint64_t others = 0;  ///< other processes of the program that used a pool
};

/// Runs the program like `tensorpool run`, with the parts `with` but without a report. Throws
/// CommandError if the program cannot be started.
RanProfile run_and_profile(const std::vector<std::string>& program,
                           const std::vector<std::string>& with);

}  // namespace tensorpool::command::profile
