/// @file
/// Tests the part profile of `tensorpool run`.

#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/run/ran_program.hpp"

namespace tensorpool::command::run {
namespace {

using testing::ProgramResult;

const std::vector<std::string> print = {"--", "/usr/bin/printenv", "TENSORPOOL_PROFILE"};

ProgramResult ran_with(const std::string& parts, const testing::Variables& variables = {}) {
    ::unsetenv("TENSORPOOL_PROFILE");
    std::vector<std::string> arguments = {"--with", parts};
    arguments.insert(arguments.end(), print.begin(), print.end());
    return ran(arguments, variables);
}

TEST(ProfilePart, IsNotEnabledUnlessItIsNamed) {
    const ProgramResult result = ran_with("none");
    EXPECT_EQ(result.output, "");
    EXPECT_FALSE(has(result.errors, "profile")) << result.errors;
}

TEST(ProfilePart, LetsTheProgramTakeSamples) {
    const ProgramResult result = ran_with("profile");
    EXPECT_EQ(result.output, "on\n");
    EXPECT_TRUE(has(result.errors, "  profile  one allocation in 512 KiB is sampled\n"))
        << result.errors;
    EXPECT_TRUE(has(result.errors, "  malloc ")) << result.errors;  // beside the others
}

TEST(ProfilePart, KeepsTheDistanceOfTheCaller) {
    const ProgramResult result = ran_with("profile", {{"TENSORPOOL_PROFILE", "64KiB"}});
    EXPECT_EQ(result.output, "64KiB\n");
    EXPECT_TRUE(has(result.errors, "  profile  as TENSORPOOL_PROFILE says: 64KiB\n"))
        << result.errors;
}

}  // namespace
}  // namespace tensorpool::command::run
