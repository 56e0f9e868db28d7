#include "plan/planned_state.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>

namespace tensorpool::planned {
namespace {

void expect_rejected(const PlannedArenaOptions& options, const std::string& message) {
    try {
        validate(options);
        ADD_FAILURE() << "expected: " << message;
    } catch (const std::invalid_argument& error) {
        EXPECT_EQ(error.what(), "tensorpool: planned arena 'a': " + message);
    }
}

TEST(ValidatePlannedOptions, AcceptsDefaults) {
    EXPECT_NO_THROW(validate({}));
    EXPECT_NO_THROW(validate({.planning_budget = {}, .tolerated_misses = 0}));
}

TEST(ValidatePlannedOptions, NamesTheInvalidOption) {
    expect_rejected({.name = "a", .learn_iterations = 0},
                    "learn_iterations is 0; expected at least 1");
    expect_rejected({.name = "a", .drift_iterations = 0},
                    "drift_iterations is 0; expected at least 1");
    expect_rejected({.name = "a", .tolerated_misses = -1},
                    "tolerated_misses is -1.000000; expected 0 or more");
    expect_rejected({.name = "a", .tolerated_misses = std::nan("")},
                    "tolerated_misses is nan; expected 0 or more");
    expect_rejected({.name = "a", .planning_budget = std::chrono::nanoseconds(-5)},
                    "planning_budget is -5 ns; expected 0 or more");
}

}  // namespace
}  // namespace tensorpool::planned
