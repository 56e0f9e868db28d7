#include "plan/validate_options.hpp"

#include <stdexcept>
#include <string>

namespace tensorpool::planned {

void validate(const PlannedArenaOptions& options) {
    const auto refuse = [&](const std::string& what) {
        throw std::invalid_argument("tensorpool: planned arena '" + options.name + "': " + what);
    };
    if (options.learn_iterations == 0) refuse("learn_iterations is 0; expected at least 1");
    if (options.drift_iterations == 0) refuse("drift_iterations is 0; expected at least 1");
    if (!(options.tolerated_misses >= 0)) {
        refuse("tolerated_misses is " + std::to_string(options.tolerated_misses) +
               "; expected 0 or more");
    }
    if (options.planning_budget.count() < 0) {
        refuse("planning_budget is " + std::to_string(options.planning_budget.count()) +
               " ns; expected 0 or more");
    }
}

}  // namespace tensorpool::planned
