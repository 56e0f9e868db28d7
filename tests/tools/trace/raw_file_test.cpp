// Tests files that a program wrote itself, because TENSORPOOL_TRACE named them.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "formats/trace/recording.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/tensorpool/started_program.hpp"

namespace tensorpool::command::trace {
namespace {

class RawFile : public ::testing::Test {
protected:
    /// Runs the program with these orders, and returns its recording.
    Recording record(const std::vector<std::string>& orders, const std::string& variable = "A=") {
        const std::string path = folder_.path() / "raw.tpt";
        StartedProgram program(
            {"/usr/bin/env", "TENSORPOOL_TRACE=" + path, variable, TENSORPOOL_RECORDED_PROGRAM});
        EXPECT_EQ(program.read_line(), "ready");
        for (const std::string& order : orders) {
            program.write_line(order);
            EXPECT_EQ(program.read_line(), "done");
        }
        program.write_line("end");
        EXPECT_EQ(program.wait(), 0) << program.errors();
        EXPECT_EQ(program.errors(), "");
        return read_recording(path);
    }

private:
    photos::TemporaryFolder folder_;
};

std::size_t count(const Recording& recording, TraceAction action) {
    return static_cast<std::size_t>(
        std::count_if(recording.calls.begin(), recording.calls.end(),
                      [&](const Call& call) { return call.action == action; }));
}

TEST_F(RawFile, ContainsEveryCallOfTheProgram) {
    const Recording recording = record({"pairs 50000", "keep 3"});
    ASSERT_EQ(recording.processes.size(), 1U);
    EXPECT_EQ(recording.processes[0].name, "recorded_progra");
    EXPECT_TRUE(recording.processes[0].from_start);
    EXPECT_TRUE(recording.processes[0].ended);
    EXPECT_EQ(recording.processes[0].dropped, 0U);
    EXPECT_EQ(count(recording, TraceAction::allocate), 50'004U);
    EXPECT_EQ(count(recording, TraceAction::deallocate), 50'004U);
    const auto lifetimes = lifetimes_of(recording);
    EXPECT_EQ(lifetimes.size(), 50'004U);
    for (const Lifetime& lifetime : lifetimes) {
        ASSERT_NE(lifetime.begin, Lifetime::none);
        ASSERT_NE(lifetime.end, Lifetime::none);
        ASSERT_EQ(recording.sources.at(lifetime.source).name, "global");
    }
}

// Each block is freed by a thread other than the one that allocated it, and allocated again by a
// third. The thread that writes first must also be the one that reads the clock first.
TEST_F(RawFile, BlocksPassedBetweenThreadsHaveCompleteLifetimes) {
    const Recording recording = record({"threads 8 20000"});
    EXPECT_EQ(count(recording, TraceAction::allocate), 160'001U);
    EXPECT_EQ(count(recording, TraceAction::deallocate), 160'001U);
    EXPECT_EQ(recording.threads.size(), 9U);
    const auto lifetimes = lifetimes_of(recording);
    EXPECT_EQ(lifetimes.size(), 160'001U);
    for (const Lifetime& lifetime : lifetimes) {
        ASSERT_NE(lifetime.begin, Lifetime::none) << lifetime.end;
        ASSERT_NE(lifetime.end, Lifetime::none) << lifetime.begin;
        ASSERT_EQ(recording.calls[lifetime.end].action, TraceAction::deallocate);
    }
}

TEST_F(RawFile, ContainsArenasScratchesAndScopes) {
    const Recording recording = record({"phases 100"});
    EXPECT_EQ(count(recording, TraceAction::scope_begin), 100U);
    EXPECT_EQ(count(recording, TraceAction::scope_end), 100U);
    std::size_t in_arena = 0;
    std::size_t in_scratch = 0;
    for (const Lifetime& lifetime : lifetimes_of(recording)) {
        const RecordedSource& source = recording.sources.at(lifetime.source);
        if (source.kind == TraceSource::arena) {
            ++in_arena;
            EXPECT_EQ(source.name, "batch");
            EXPECT_EQ(lifetime.bytes, 1000U);
            EXPECT_EQ(recording.calls.at(lifetime.end).action, TraceAction::arena_release);
        }
        if (source.kind == TraceSource::scratch) {
            ++in_scratch;
            EXPECT_EQ(lifetime.bytes, 500U);
            EXPECT_EQ(recording.calls.at(lifetime.end).action, TraceAction::scratch_release);
        }
    }
    EXPECT_EQ(in_arena, 100U);
    EXPECT_EQ(in_scratch, 100U);
}

TEST_F(RawFile, StacksNameTheProgram) {
    const Recording recording = record({"keep 100"}, "TENSORPOOL_TRACE_STACKS=16KiB");
    EXPECT_EQ(recording.processes.at(0).stack_interval, std::uint64_t{16} << 10);
    std::size_t sampled = 0;
    for (const Call& call : recording.calls) {
        if (call.stack == 0) continue;
        ++sampled;
        const auto& frames = recording.stacks.at(call.stack);
        EXPECT_TRUE(std::any_of(frames.begin(), frames.end(), [&](const RecordedFrame& frame) {
            return recording.modules.at(frame.module).path == TENSORPOOL_RECORDED_PROGRAM;
        }));
    }
    EXPECT_GE(sampled, 90U);  // each with a probability of 0.986
    EXPECT_LT(recording.stacks.size(), 10U);
}

}  // namespace
}  // namespace tensorpool::command::trace
