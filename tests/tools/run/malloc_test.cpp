/// @file
/// Tests the part malloc of `tensorpool run`, and parts that cannot be enabled.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/run/ran_program.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::run {
namespace {

using photos::TemporaryFolder;
using testing::ProgramResult;

#ifdef TENSORPOOL_HAS_INTERPOSER

TEST(MallocPart, LargeBlocksComeFromThePool) {
    const ProgramResult result =
        ran({"--with", "malloc", "--", TENSORPOOL_PLAIN_SUBJECT, "1000000"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.errors, "malloc   in 1 program: blocks from 64KiB on\n"))
        << result.errors;
    EXPECT_TRUE(has(result.errors, "1 process used a pool")) << result.errors;
    EXPECT_TRUE(has(result.errors, "tensorpool: pool 'global'")) << result.errors;
}

TEST(MallocPart, AProgramWithSmallBlocksUsesNoPool) {
    const ProgramResult result = ran({"--with", "malloc", "--", TENSORPOOL_PLAIN_SUBJECT, "1000"});
    EXPECT_TRUE(has(result.errors, "pools    none used: no request reached 64KiB\n"))
        << result.errors;
    const ProgramResult lower = ran(
        {"--with", "malloc", "--interpose-min", "1000", "--", TENSORPOOL_PLAIN_SUBJECT, "1000"});
    EXPECT_TRUE(has(lower.errors, "1 process used a pool")) << lower.errors;
}

TEST(MallocPart, AStaticProgramIsReportedAndRuns) {
    const ProgramResult result = ran({"--", TENSORPOOL_STATIC_SUBJECT, "1000000"});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.errors, "malloc   not enabled: ")) << result.errors;
    EXPECT_TRUE(has(result.errors, "is statically linked")) << result.errors;
    const ProgramResult with_minimum =
        ran({"--interpose-min", "1", "--", TENSORPOOL_STATIC_SUBJECT, "1000000"});
    EXPECT_EQ(with_minimum.exit_code, 0) << with_minimum.errors;
    const ProgramResult refused =
        ran({"--with", "malloc", "--", TENSORPOOL_STATIC_SUBJECT, "9999999999999999"});
    EXPECT_EQ(refused.exit_code, 125);
    EXPECT_EQ(refused.output, "");  // it was not started
    EXPECT_TRUE(has(refused.errors, "run: --with malloc: ")) << refused.errors;
}

TEST(MallocPart, ALibraryPreloadedByTheUserFollows) {
    const ProgramResult result = ran({"--with", "malloc", "--", "/usr/bin/printenv", "LD_PRELOAD"},
                                     {{"LD_PRELOAD", "libm.so.6"}});
    EXPECT_TRUE(has(result.output, "libtensorpool_interpose.so:libm.so.6\n")) << result.output;
}

TEST(MallocPart, CountsEachProcessOfATree) {
    const ProgramResult result =
        ran({"--with", "malloc", "--", "/bin/sh", "-c",
             "for i in $(seq 20); do /usr/bin/env true; done; " TENSORPOOL_PLAIN_SUBJECT
             " 200000 & " TENSORPOOL_PLAIN_SUBJECT " 300000; wait"});
    EXPECT_TRUE(has(result.errors, "2 processes used a pool")) << result.errors;
    // The shell, seq, 20 times env and then true, and the two subjects.
    EXPECT_TRUE(has(result.errors, "malloc   in 44 programs: ")) << result.errors;
}

TEST(MallocPart, AtTheLimitMallocFails) {
    const ProgramResult result =
        ran({"--with", "malloc", "--limit", "8MiB", "--", TENSORPOOL_PLAIN_SUBJECT, "100000000"});
    EXPECT_EQ(result.output, "refused\n");
    EXPECT_EQ(result.exit_code, 0);
}

#endif

/// The command alone in a folder, without the files of its parts.
class IsolatedCommand : public ::testing::Test {
protected:
    ProgramResult run(std::vector<std::string> arguments) const {
        std::filesystem::create_directories(folder_.path() / "bin");
        const auto command = folder_.path() / "bin" / "tensorpool";
        std::filesystem::copy_file(TENSORPOOL_PROGRAM, command,
                                   std::filesystem::copy_options::overwrite_existing);
        arguments.insert(arguments.begin(), "run");
        return testing::run_program(command, std::move(arguments));
    }
    TemporaryFolder folder_;
};

#ifdef TENSORPOOL_HAS_INTERPOSER

TEST_F(IsolatedCommand, MissingPartsAreReportedAndTheProgramRuns) {
    const ProgramResult result = run({"--", "/bin/sh", "-c", "echo ran $LD_PRELOAD $PYTHONPATH"});
    EXPECT_EQ(result.output, "ran\n");
    EXPECT_TRUE(has(result.errors,
                    "libtensorpool_interpose.so does not exist: the installation is incomplete"))
        << result.errors;
    EXPECT_TRUE(has(result.errors, "NumPy    not enabled: ")) << result.errors;
    EXPECT_TRUE(has(result.errors, "pybind11-dev")) << result.errors;
}

TEST_F(IsolatedCommand, AMissingRequestedPartIsAnError) {
    for (const char* const part : {"malloc", "numpy", "torch"}) {
        const ProgramResult result = run({"--with", part, "--", "/bin/echo", "began"});
        EXPECT_EQ(result.exit_code, 125) << part;
        EXPECT_EQ(result.output, "");
        EXPECT_TRUE(has(result.errors, std::string("run: --with ") + part + ": ")) << result.errors;
    }
}

#else

TEST_F(IsolatedCommand, AStaticBuildReportsThatItNeedsTheSharedLibrary) {
    const ProgramResult result = run({"--", "/bin/echo", "began"});
    EXPECT_EQ(result.exit_code, 125);
    EXPECT_EQ(result.output, "");
    EXPECT_TRUE(has(result.errors, "BUILD_SHARED_LIBS=OFF")) << result.errors;
    EXPECT_EQ(run({"--with", "none", "--", "/bin/echo", "began"}).output, "began\n");
}

#endif

}  // namespace
}  // namespace tensorpool::command::run
