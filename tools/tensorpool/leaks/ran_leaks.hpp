#pragma once

#include <string>
#include <vector>

#include "leaks/observation.hpp"
#include "leaks/watch.hpp"
#include "run/report.hpp"

namespace tensorpool::command::leaks {

/// The observation of a program that has ended.
struct RanLeaks {
    run::Outcome outcome;
    /// Of the process with the most iterations; empty if none was observed.
    Observation observation;
};

/// Runs the program like `tensorpool run`, with the parts `with` but without a report, and observes
/// each of its processes. Throws CommandError if the program cannot be started.
RanLeaks run_and_observe(const std::vector<std::string>& program,
                         const std::vector<std::string>& with, const Pace& pace);

}  // namespace tensorpool::command::leaks
