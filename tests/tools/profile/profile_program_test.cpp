/// @file
/// Tests the options of `tensorpool profile`.

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>

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
    expect_refused({"--"},
                   "found nothing after --; expected a program to start, as in `tensorpool profile "
                   "-- python3 train.py`");
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

TEST(ProfileProgram, RefusesIntervalsThatItCannotUse) {
    expect_refused({"--interval", "64KiB", "--peak"},
                   "found --interval with a format or a value; expected it alone, because it "
                   "changes a process and shows no profile");
    for (const char* const wrong : {"0", "512", "2TiB", "often", "-1"}) {
        const ProgramResult result =
            run_program(TENSORPOOL_PROGRAM, {"profile", "--interval", wrong});
        EXPECT_EQ(result.exit_code, 2);
        EXPECT_NE(result.errors.find(std::string("found '") + wrong +
                                     "'; expected off, all, or a size from 1KiB to 1TiB"),
                  std::string::npos)
            << result.errors;
    }
}

/// Runs the command on this process, which allocates meanwhile.
ProgramResult run_on_this_process(std::vector<std::string> arguments) {
    MemoryPool pool;
    const auto take_slow_path = [&] { pool.deallocate(pool.allocate(1 << 20)); };
    take_slow_path();
    arguments.insert(arguments.begin(), {"profile", "--pid", std::to_string(getpid())});
    ProgramResult result;
    std::atomic<bool> is_done = false;
    std::thread command([&] {
        result = run_program(TENSORPOOL_PROGRAM, std::move(arguments));
        is_done = true;
    });
    while (!is_done) take_slow_path();
    command.join();
    return result;
}

TEST(ProfileProgram, LetsAProcessWithoutSamplesBeginAndSaysSo) {
    const ProgramResult first = run_on_this_process({"--json"});
    EXPECT_EQ(first.exit_code, 1);
    EXPECT_EQ(first.output, "");
    EXPECT_EQ(first.errors,
              "tensorpool: profile: sampling was off; process " + std::to_string(getpid()) +
                  " samples one allocation in 512 KiB on average now, each thread within its "
                  "next 64 MiB of allocations; what it allocated before is unknown; run this "
                  "command again to see what it allocates from now on\n");
    EXPECT_EQ(profile_interval(), 524288U);
    const ProgramResult second = run_on_this_process({});
    EXPECT_EQ(second.exit_code, 0);
    EXPECT_EQ(second.errors, "");
    // The loop allocates so fast that fewer samples than requested are taken.
    EXPECT_TRUE(second.output.find("one sample per 512 KiB") != std::string::npos ||
                second.output.find("(512 KiB requested)") != std::string::npos)
        << second.output;
}

TEST(ProfileProgram, ChangesTheIntervalOfAProcess) {
    const ProgramResult result = run_on_this_process({"--interval", "64KiB"});
    EXPECT_EQ(result.errors, "");
    EXPECT_EQ(result.output, "process " + std::to_string(getpid()) +
                                 " samples one allocation in 64.0 KiB on average now\n");
    EXPECT_EQ(profile_interval(), 65536U);
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
