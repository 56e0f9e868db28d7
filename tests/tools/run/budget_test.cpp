/// @file
/// Tests `tensorpool run --budget`, with programs that know nothing of budgets.

#include <gtest/gtest.h>

#include "tools/run/ran_program.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::run {
namespace {

using testing::ProgramResult;

class RunBudget : public ::testing::Test {
protected:
    std::string file(std::string_view content) const { return folder_.file("b.txt", content); }

private:
    photos::TemporaryFolder folder_;
};

TEST_F(RunBudget, ABadFileIsRefusedBeforeTheProgramStarts) {
    const std::string path = file("pool global hard=2GB\nscope a\n");
    const ProgramResult result =
        ran({"--with", "none", "--budget", path, "--", "/bin/echo", "ran"});
    EXPECT_EQ(result.exit_code, 125);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(result.errors, "tensorpool: run: --budget " + path +
                                 ":1: found 'hard=2GB'; expected a size above 0 such as 512MiB or "
                                 "2GiB; " +
                                 path + ":2: found 'scope a'; expected hard=SIZE or soft=SIZE\n");
    const ProgramResult missing =
        ran({"--with", "none", "--budget", "/nowhere", "--", "/bin/echo", "ran"});
    EXPECT_EQ(missing.errors,
              "tensorpool: run: --budget /nowhere: cannot be read: No such file or directory\n");
}

TEST_F(RunBudget, TheProgramGetsTheWholePath) {
    const std::string path = file("pool global hard=1GiB\n");
    const ProgramResult result = testing::run_program(
        "/bin/sh", {"-c", "cd $(dirname " + path +
                              "); " TENSORPOOL_PROGRAM " run --with none --budget b.txt -- "
                              "/usr/bin/printenv TENSORPOOL_BUDGETS"});
    EXPECT_EQ(result.output, path + "\n") << result.errors;
}

#ifdef TENSORPOOL_HAS_INTERPOSER

TEST_F(RunBudget, BeyondTheBudgetOfThePoolMallocFails) {
    const std::string path = file("process hard=16MiB\npool global hard=8MiB\n");
    const ProgramResult result = ran({"--with", "malloc", "--budget", path, "--",
                                      TENSORPOOL_PLAIN_SUBJECT, "1000000", "100000000"});
    EXPECT_EQ(result.output, "refused\n");
    EXPECT_EQ(result.exit_code, 0);
    const ProgramResult fits = ran({"--with", "malloc", "--budget", path, "--",
                                    TENSORPOOL_PLAIN_SUBJECT, "1000000", "6000000"});
    EXPECT_EQ(fits.output, "");
    const ProgramResult beyond_process =
        ran({"--with", "malloc", "--budget", file("process hard=4MiB\npool global soft=1MiB\n"),
             "--", TENSORPOOL_PLAIN_SUBJECT, "6000000"});
    EXPECT_EQ(beyond_process.output, "refused\n");
}

#endif
#ifdef TENSORPOOL_PYTHON

TEST_F(RunBudget, AScopeOfAPythonProgramIsLimited) {
    const std::string path = file("scope loader hard=64MiB\n");
    const ProgramResult result =
        ran({"--with", "numpy", "--budget", path, "--", TENSORPOOL_PYTHON, "-c",
             "import numpy, tensorpool\n"
             "with tensorpool.scope('loader'):\n"
             "    kept = numpy.ones(5_000_000)\n"
             "    try:\n"
             "        numpy.ones(5_000_000)\n"
             "    except MemoryError:\n"
             "        print('refused')\n"
             "numpy.ones(10_000_000)\n"
             "print('outside')\n"});
    EXPECT_EQ(result.output, "refused\noutside\n") << result.errors;
}

#endif

}  // namespace
}  // namespace tensorpool::command::run
