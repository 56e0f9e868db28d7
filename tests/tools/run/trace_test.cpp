/// @file
/// Tests the file of `tensorpool run --trace`, however the program ends.

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "formats/trace/recording.hpp"
#include "tools/run/ran_program.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::run {
namespace {

using testing::ProgramResult;
using trace::Recording;

class RunTrace : public ::testing::Test {
protected:
    ProgramResult record(std::vector<std::string> arguments) const {
        arguments.insert(arguments.begin(), {"--with", "none", "--trace", path(), "--json", "--"});
        return ran(std::move(arguments));
    }
    std::string path() const { return folder_.path() / "trace"; }
    Recording recording() const { return trace::read_recording(path()); }

    photos::TemporaryFolder folder_;
};

std::size_t count(const Recording& recording, TraceAction action) {
    return static_cast<std::size_t>(
        std::ranges::count(recording.calls, action, &trace::Call::action));
}

TEST_F(RunTrace, ContainsEveryCall) {
    const ProgramResult result = record({TENSORPOOL_SUBJECT, "hold", "1", "use", "5000"});
    EXPECT_EQ(result.exit_code, 0);
    const Recording recording = this->recording();
    ASSERT_EQ(recording.processes.size(), 1U) << result.errors;
    EXPECT_TRUE(recording.processes[0].ended);
    EXPECT_TRUE(recording.processes[0].from_start);
    EXPECT_EQ(recording.processes[0].dropped, 0U);
    EXPECT_EQ(count(recording, TraceAction::allocate), 5001U);
    EXPECT_EQ(count(recording, TraceAction::deallocate), 5000U);
    const auto parsed = nlohmann::json::parse(result.errors.substr(0, result.errors.find('\n')));
    EXPECT_GE(parsed["trace"]["entries"], 10001);
    EXPECT_EQ(parsed["trace"]["dropped"], 0);
    EXPECT_EQ(parsed["trace"]["problem"], "");
    EXPECT_EQ(parsed["trace"]["written_bytes"], std::filesystem::file_size(path()));
}

TEST_F(RunTrace, ContainsTheCallsOfAKilledProgram) {
    EXPECT_EQ(record({"/bin/sh", "-c",
                      std::string(TENSORPOOL_SUBJECT) + " use 3000 hold 1 raise 9; exit 5"})
                  .exit_code,
              5);
    const Recording recording = this->recording();
    EXPECT_EQ(count(recording, TraceAction::allocate), 3001U);
    EXPECT_EQ(count(recording, TraceAction::deallocate), 3000U);
}

TEST_F(RunTrace, ContainsAllProcessesOfATree) {
    EXPECT_EQ(record({TENSORPOOL_SUBJECT, "use", "10", "fork", "use", "100", "exec", "use", "7",
                      "exit", "2"})
                  .exit_code,
              2);
    const Recording recording = this->recording();
    // The parent, its child, and the programs that both executed.
    EXPECT_EQ(recording.processes.size(), 4U);
    EXPECT_TRUE(std::ranges::all_of(recording.processes, &trace::RecordedProcess::ended));
    EXPECT_EQ(count(recording, TraceAction::allocate), 10U + 2 * 100 + 2 * 7);
    EXPECT_EQ(count(recording, TraceAction::deallocate), 10U + 2 * 100 + 2 * 7);
}

TEST_F(RunTrace, ContainsStacksOnRequest) {
    const ProgramResult result = ran({"--with", "none", "--trace", path(), "--stacks", "100KiB",
                                      "--", TENSORPOOL_SUBJECT, "hold", "1", "hold", "1"});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    const Recording recording = this->recording();
    EXPECT_EQ(recording.processes.at(0).stack_interval, 102400U);
    EXPECT_GT(recording.stacks.size(), 1U);
}

TEST_F(RunTrace, TheProgramContinuesOnAFullDisk) {
    const ProgramResult result = ran({"--with", "none", "--trace", "/dev/full", "--",
                                      TENSORPOOL_SUBJECT, "use", "200000", "say", "done"});
    EXPECT_EQ(result.output, "done\n") << result.errors;
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.errors, "incomplete: ")) << result.errors;
}

TEST_F(RunTrace, TheProgramContinuesAtAFileSizeLimit) {
    // The shell's unit is 512 bytes. The program's rings are in a file too, and need more.
    const std::string line =
        "ulimit -S -f 64; exec " TENSORPOOL_PROGRAM " run --with none --trace " + path() +
        " -- /bin/sh -c 'ulimit -S -f unlimited; exec " TENSORPOOL_SUBJECT " use 2000000 say done'";
    const ProgramResult result = testing::run_program("/bin/sh", {"-c", line});
    EXPECT_EQ(result.output, "done\n") << result.errors;
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_TRUE(has(result.errors, "incomplete: ")) << result.errors;
}

TEST_F(RunTrace, AFileThatCannotBeCreatedIsReportedBeforeTheStart) {
    const ProgramResult result = ran(
        {"--with", "none", "--trace", "/nowhere/trace", "--", TENSORPOOL_SUBJECT, "say", "began"});
    EXPECT_EQ(result.exit_code, 125);
    EXPECT_EQ(result.output, "");
    EXPECT_TRUE(has(result.errors, "run: --trace /nowhere/trace")) << result.errors;
}

TEST_F(RunTrace, InNestedRunsTheInnerOneObserves) {
    const ProgramResult result =
        ran({"--with", "none", "--trace", path(), "--report", "none", "--", TENSORPOOL_PROGRAM,
             "run", "--with", "none", "--", "/bin/sh", "-c",
             "printenv TENSORPOOL_TRACE; " TENSORPOOL_SUBJECT " use 5"});
    EXPECT_EQ(result.output, "");
    EXPECT_TRUE(has(result.errors, "1 process used a pool")) << result.errors;
    EXPECT_EQ(recording().processes.size(), 0U);
}

TEST_F(RunTrace, TheReportSummarizesTheRecording) {
    const ProgramResult result =
        ran({"--with", "none", "--trace", path(), "--", TENSORPOOL_SUBJECT, "use", "1000"});
    EXPECT_TRUE(has(result.errors, " entries in " + path() + ", ")) << result.errors;
    EXPECT_FALSE(has(result.errors, "more were lost")) << result.errors;
}

}  // namespace
}  // namespace tensorpool::command::run
