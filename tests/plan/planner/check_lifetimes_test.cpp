#include <cstdint>
#include <stdexcept>
#include "plan/planner/problem.hpp"

#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::planner::check_count;
using tensorpool::planner::check_lifetimes;
using tensorpool::planner::max_bytes;

TEST(CheckLifetimes, AcceptsValidLifetimes) {
    EXPECT_NO_THROW(check_lifetimes({}));
    EXPECT_NO_THROW(check_lifetimes(Lifetimes{{INT64_MIN, INT64_MAX, 0, max_bytes}}));
    EXPECT_NO_THROW(check_lifetimes(Lifetimes{{0, 1, max_bytes - 63, 64}}));
}

TEST(CheckLifetimes, CountsThePaddingOfAlignments) {
    EXPECT_THROW(check_lifetimes(Lifetimes{{0, 1, max_bytes - 62, 64}}), std::invalid_argument);
    EXPECT_THROW(check_lifetimes(Lifetimes{{0, 1, max_bytes + 1}}), std::invalid_argument);
    EXPECT_THROW(check_lifetimes(Lifetimes{{0, 1, 2, max_bytes}, {0, 1, 0, max_bytes}}),
                 std::invalid_argument);
}

TEST(CheckLifetimes, LimitsTheNumberOfBuffers) {
    EXPECT_NO_THROW(check_count(2'147'483'647));
    try {
        check_count(2'147'483'648);
        FAIL() << "too many buffers were accepted";
    } catch (const std::invalid_argument& error) {
        EXPECT_STREQ(error.what(),
                     "tensorpool: plan: 2147483648 buffers; expected at most 2147483647");
    }
}

}  // namespace
