/// @file
/// Tests the options of `tensorpool profile`.

#include <gtest/gtest.h>

#include "support/run_program.hpp"

namespace tensorpool::command {
namespace {

using testing::ProgramResult;
using testing::run_program;

void expect_refused(std::vector<std::string> arguments, const std::string& message) {
    arguments.insert(arguments.begin(), "profile");
    const ProgramResult result = run_program(TENSORPOOL_PROGRAM, arguments);
    EXPECT_EQ(result.exit_code, 2) << message;
    EXPECT_EQ(result.errors, "tensorpool: profile: " + message + "\n");
    EXPECT_EQ(result.output, "");
}

TEST(ProfileProgram, RefusesOptionsThatExcludeEachOther) {
    expect_refused({"--pprof", "--html"}, "found --pprof and --html; expected one format");
    expect_refused({"--json", "--collapsed"}, "found --collapsed and --json; expected one format");
    expect_refused({"--live", "--peak"}, "found --live and --peak; expected one value");
    expect_refused({"--pid", "1", "--", "/bin/true"},
                   "found a process and a program to start; expected one of them");
}

TEST(ProfileProgram, RefusesOptionsWithoutEffect) {
    expect_refused({"--html", "--stacks"},
                   "found --stacks or --lifetimes with --html; expected them without a format, "
                   "because they change the table");
    expect_refused({"--compare", "a.json"},
                   "found --compare without --html; expected both, because only the page compares");
    expect_refused({"--with", "malloc"},
                   "found --with without a program; expected a program to start, after --");
}

TEST(ProfileProgram, ReadsTheProfileToCompareWithFirst) {
    const ProgramResult result = run_program(
        TENSORPOOL_PROGRAM, {"profile", "--html", "--compare", "/nowhere", "--", "/bin/echo", "1"});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(result.errors, "tensorpool: /nowhere cannot be read or is empty\n");
    EXPECT_EQ(result.output, "");
}

}  // namespace
}  // namespace tensorpool::command
