#include <gtest/gtest.h>

#include <sstream>
#include <stdexcept>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

TEST(WritePlan, IsTheSameOnEveryMachine) {
    std::ostringstream out;
    write_plan(out, testing::small_plan());
    const std::string bytes = out.str();
    ASSERT_EQ(bytes.size(), 56 + 5 * 32 + 8);
    EXPECT_EQ(bytes.substr(0, 24), std::string("tp-plan\n\1\0\0\0\40\0\0\0\5\0\0\0\0\0\0\0", 24));
    EXPECT_EQ(bytes.substr(24, 8), std::string("\0\2\0\0\0\0\0\0", 8));
    EXPECT_EQ(bytes.substr(56 + 32, 8), std::string("\0\1\0\0\0\0\0\0", 8));
}

TEST(WritePlan, ThrowsIfTheStreamFails) {
    std::ostringstream out;
    out.setstate(std::ios::badbit);
    EXPECT_THROW(write_plan(out, testing::small_plan()), std::runtime_error);
}

}  // namespace
}  // namespace tensorpool::planned
