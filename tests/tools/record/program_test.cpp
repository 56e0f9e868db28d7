/// @file
/// Tests the command on a process that executes orders.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "common/settings.hpp"
#include "formats/trace/recording.hpp"
#include "support/run_program.hpp"
#include "support/wait_until.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/tensorpool/started_program.hpp"

namespace tensorpool::command {
namespace {

using Json = nlohmann::json;
using trace::Lifetime;
using trace::Recording;

constexpr std::size_t ring_entries = 16'384;

class RecordedProgram {
public:
    RecordedProgram() : program_({TENSORPOOL_RECORDED_PROGRAM}) {
        EXPECT_EQ(program_.read_line(), "ready");
    }
    std::string number() const { return std::to_string(program_.process()); }
    void begin(const std::string& what) { program_.write_line(what); }
    /// Executes an order and returns when it is done.
    void order(const std::string& what) {
        begin(what);
        EXPECT_EQ(program_.read_line(), "done") << what;
    }
    void end() {
        program_.write_line("end");
        EXPECT_EQ(program_.wait(), 0);
    }
    void kill() {
        program_.kill(SIGKILL);
        EXPECT_EQ(program_.wait(), -1);
    }

private:
    StartedProgram program_;
};

class Recorder {
public:
    /// Returns after the recording was requested.
    explicit Recorder(std::vector<std::string> arguments)
        : program_(command(std::move(arguments))) {
        wait_for("requested process");
    }
    /// Makes the process notice the request; returns when its rings are attached.
    void begin(RecordedProgram& program) {
        program.order("large");
        wait_for("has begun to record");
    }
    void signal(int number) { program_.kill(number); }
    /// Ends it and returns its JSON output.
    Json outcome(int code = 0) {
        EXPECT_EQ(program_.wait(), code) << program_.errors();
        const std::string line = program_.read_line();
        return line.empty() ? Json() : Json::parse(line);
    }
    std::string errors() const { return program_.errors(); }

private:
    static std::vector<std::string> command(std::vector<std::string> arguments) {
        arguments.insert(arguments.begin(), {TENSORPOOL_PROGRAM, "record", "--json"});
        return arguments;
    }
    void wait_for(const std::string& word) const {
        const auto has_come = [&] { return errors().find(word) != std::string::npos; };
        if (!testing::wait_until("the recorder says: " + word, has_come)) ADD_FAILURE() << errors();
    }

    StartedProgram program_;
};

std::size_t count(const Recording& recording, TraceAction action) {
    return static_cast<std::size_t>(
        std::count_if(recording.calls.begin(), recording.calls.end(),
                      [&](const trace::Call& call) { return call.action == action; }));
}

class RecordTest : public ::testing::Test {
protected:
    std::string path() const { return folder_.path() / "a.tpt"; }
    Recording recording() const { return trace::read_recording(path()); }

    photos::TemporaryFolder folder_;
};

TEST_F(RecordTest, RecordsAProcessUntilItEnds) {
    RecordedProgram program;
    program.order("keep 3");
    Recorder recorder({"--pid", program.number(), "-o", path()});
    recorder.begin(program);
    program.order("pairs 1000");
    program.order("threads 3 1000");
    program.end();
    const Json outcome = recorder.outcome();
    EXPECT_EQ(outcome["process_ended"], true);
    EXPECT_EQ(outcome["dropped"], 0);
    EXPECT_EQ(outcome["bytes"], std::filesystem::file_size(path()));
    const Recording read = recording();
    EXPECT_EQ(count(read, TraceAction::allocate), 4001U);
    EXPECT_EQ(count(read, TraceAction::deallocate), 4004U);
    // Each thread has one entry with its id.
    EXPECT_EQ(outcome["entries"], read.calls.size() + read.capacities.size() + 4);
    EXPECT_FALSE(read.processes.at(0).from_start);
    EXPECT_TRUE(read.processes.at(0).ended);
    std::size_t earlier = 0;
    for (const Lifetime& lifetime : lifetimes_of(read)) {
        ASSERT_NE(lifetime.end, Lifetime::none);
        if (lifetime.begin == Lifetime::none) ++earlier;
    }
    EXPECT_EQ(earlier, 3U);
}

TEST_F(RecordTest, EndsWithCtrlCAndTheProcessContinues) {
    RecordedProgram program;
    for (unsigned round = 1; round <= 2; ++round) {
        Recorder recorder({"--pid", program.number(), "-o", path()});
        recorder.begin(program);
        program.order("pairs 10");
        recorder.signal(SIGINT);
        const Json outcome = recorder.outcome();
        EXPECT_EQ(outcome["process_ended"], false);
        EXPECT_EQ(outcome["problem"], "");
        program.order("pairs 10");  // notices the request to stop
        EXPECT_EQ(count(recording(), TraceAction::allocate), 11U) << round;
        EXPECT_TRUE(recording().processes.at(0).ended);
    }
    program.end();
}

TEST_F(RecordTest, EndsAfterTheRequestedTime) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path(), "--for", "1s"});
    recorder.begin(program);
    program.begin("forever");
    const Json outcome = recorder.outcome();
    EXPECT_EQ(outcome["process_ended"], false);
    EXPECT_GE(outcome["seconds"], 1.0);
    EXPECT_GT(recording().calls.size(), 0U);
    EXPECT_TRUE(recording().processes.at(0).ended);
}

// The recorder is stopped, so that all entries are in the rings when the process is killed.
TEST_F(RecordTest, EntriesInTheRingsOfAKilledProcessAreKept) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path()});
    recorder.begin(program);
    recorder.signal(SIGSTOP);
    program.order("pairs 5000");
    program.kill();
    recorder.signal(SIGCONT);
    const Json outcome = recorder.outcome();
    EXPECT_EQ(outcome["process_ended"], true);
    EXPECT_EQ(outcome["dropped"], 0);
    EXPECT_EQ(count(recording(), TraceAction::allocate), 5001U);
    EXPECT_EQ(count(recording(), TraceAction::deallocate), 5001U);
}

TEST_F(RecordTest, CountsEntriesWithoutRoomInARing) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path()});
    recorder.begin(program);
    recorder.signal(SIGSTOP);
    program.order("pairs 20000");
    recorder.signal(SIGCONT);
    // Reported with the ring's next entries, which need room.
    testing::wait_until("most of the ring is read",
                        [&] { return recording().calls.size() > ring_entries / 2; });
    program.order("pairs 1");
    program.end();
    const Json outcome = recorder.outcome();
    EXPECT_GE(outcome["dropped"], 40'000 - ring_entries);
    EXPECT_EQ(recording().processes.at(0).dropped, outcome["dropped"]);
    const std::uint64_t entries = outcome["entries"];
    const std::uint64_t dropped = outcome["dropped"];
    // Includes the thread's id, and the pool's capacity when recording began.
    EXPECT_EQ(entries + dropped, 2 + 2 + 40'000 + 2);
}

TEST_F(RecordTest, AProcessCanBeRecordedAgainAfterItsRecorderWasKilled) {
    RecordedProgram program;
    {
        Recorder recorder({"--pid", program.number(), "-o", path()});
        recorder.begin(program);
        program.order("pairs 10000");  // more than one chunk
        testing::wait_until("calls are recorded", [&] { return !recording().calls.empty(); });
        recorder.signal(SIGKILL);
        recorder.outcome(-1);
    }
    EXPECT_FALSE(recording().processes.at(0).ended);
    program.order("pairs 100000");
    Recorder recorder({"--pid", program.number(), "-o", path()});
    recorder.begin(program);
    program.order("pairs 10");
    program.end();
    EXPECT_GE(recorder.outcome()["entries"], 22);
}

TEST_F(RecordTest, SamplesStacks) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path(), "--stacks", "16KiB"});
    recorder.begin(program);
    program.order("keep 50");
    program.end();
    recorder.outcome();
    const Recording read = recording();
    EXPECT_EQ(read.processes.at(0).stack_interval, std::uint64_t{16} << 10);
    EXPECT_GT(read.stacks.size(), 1U);
    EXPECT_TRUE(std::any_of(read.modules.begin(), read.modules.end(), [](const auto& module) {
        return module.path == TENSORPOOL_RECORDED_PROGRAM;
    }));
}

TEST_F(RecordTest, AFullDiskEndsOnlyTheRecording) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", "/dev/full"});
    recorder.begin(program);
    EXPECT_NE(recorder.outcome(finding)["problem"], "");
    EXPECT_NE(
        recorder.errors().find("/dev/full cannot be written further: No space left on device"),
        std::string::npos)
        << recorder.errors();
    program.order("pairs 10");
    program.end();
}

TEST_F(RecordTest, TheFileIsReadableAfterAFullDisk) {
    RecordedProgram program;
    StartedProgram recorder({"/bin/bash", "-c",
                             "ulimit -f 64; exec " TENSORPOOL_PROGRAM " record --pid " +
                                 program.number() + " -o " + path()});
    testing::wait_until("the process is requested to record", [&] {
        return recorder.errors().find("requested process") != std::string::npos;
    });
    program.order("large");
    program.begin("forever");
    EXPECT_EQ(recorder.wait(), finding);
    EXPECT_NE(recorder.errors().find("cannot be written further: File too large"),
              std::string::npos)
        << recorder.errors();
    EXPECT_NE(recorder.read_line().find(" entries in "), std::string::npos);
    EXPECT_GT(recording().calls.size(), 1000U);
    EXPECT_EQ(recording().cut_bytes, 0U);
}

testing::ProgramResult run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "record");
    return testing::run_program(TENSORPOOL_PROGRAM, std::move(arguments));
}

void expect_refusal(const testing::ProgramResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.exit_code, code) << result.errors;
    EXPECT_EQ(result.output, "");
    EXPECT_NE(result.errors.find(part), std::string::npos) << result.errors;
}

TEST_F(RecordTest, AnIdleProcessIsNotRecorded) {
    RecordedProgram program;
    expect_refusal(run({"--pid", program.number(), "-o", path(), "--for", "100ms"}), finding,
                   "has not begun to record: none of its threads took a slow path");
    program.order("pairs 1");
    program.end();
    EXPECT_TRUE(recording().calls.empty());
}

TEST_F(RecordTest, AProcessThatEndsBeforeItBeginsGivesStatusGone) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path()});
    program.kill();
    EXPECT_EQ(recorder.outcome(target_gone)["begun"], false);
    EXPECT_NE(recorder.errors().find("tensorpool run --trace"), std::string::npos);
}

TEST_F(RecordTest, AllowsOneRecorderAtATime) {
    RecordedProgram program;
    Recorder recorder({"--pid", program.number(), "-o", path()});
    expect_refusal(run({"--pid", program.number(), "-o", path() + "2"}), finding,
                   "recorded already");
    EXPECT_FALSE(std::filesystem::exists(path() + "2"));
    recorder.begin(program);
    program.end();
    EXPECT_EQ(recorder.outcome()["begun"], true);
}

TEST_F(RecordTest, ReportsErrorsWithAdvice) {
    expect_refusal(run({"--pid", "999999999", "-o", path()}), target_gone, "no such process");
    expect_refusal(run({"--pid", std::to_string(getpid()), "-o", path()}), finding,
                   "it has no statistics to show");
    expect_refusal(run({"--pid", "1", "--for", "soon"}), wrong_usage, "'soon' is not a time");
    expect_refusal(run({"--pid", "1", "--stacks", "much"}), wrong_usage, "much");
    expect_refusal(run({"--pid", "1", "--name", "x"}), wrong_usage, "--name");
    RecordedProgram program;
    expect_refusal(run({"--pid", program.number(), "-o", "/nonexistent/a.tpt"}), finding,
                   "cannot be written: No such file or directory; give another file with -o");
    program.order("large");
    program.end();
}

TEST_F(RecordTest, AProgramThatRecordsItselfCannotBeRecorded) {
    StartedProgram program(
        {"/usr/bin/env", "TENSORPOOL_TRACE=" + path(), TENSORPOOL_RECORDED_PROGRAM});
    EXPECT_EQ(program.read_line(), "ready");
    expect_refusal(run({"--pid", std::to_string(program.process()), "-o", path() + "2"}), finding,
                   "records into a file of its own");
    program.write_line("end");
    EXPECT_EQ(program.wait(), 0);
}

}  // namespace
}  // namespace tensorpool::command
