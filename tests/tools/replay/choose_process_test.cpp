#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "made_recording.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

/// Two processes, 4711 and 4712; the second allocates more.
trace::Recording two() {
    MadeRecording made(2);
    trace::Recording& recording = made.get();
    recording.processes.push_back({.number = 4712, .name = "other"});
    recording.threads[1].process = 1;
    made.allocate(0, 64, 100);
    made.allocate(1, 64, 200);
    return std::move(recording);
}

TEST(ChooseProcess, ChoosesTheProcessWithTheMostBytes) {
    EXPECT_EQ(choose_process(two(), 0), 1u);
}

TEST(ChooseProcess, ChoosesTheProcessByItsId) {
    EXPECT_EQ(choose_process(two(), 4711), 0u);
}

TEST(ChooseProcess, ErrorListsTheProcesses) {
    try {
        choose_process(two(), 1);
        FAIL();
    } catch (const CommandError& error) {
        EXPECT_EQ(error.code(), wrong_usage);
        EXPECT_NE(std::string(error.what()).find("4711 (made), 4712 (other)"), std::string::npos);
    }
}

TEST(ChooseProcess, IgnoresDeviceMemory) {
    trace::Recording recording = two();
    recording.sources.push_back({.process = 1, .kind = TraceSource::device, .name = "weights"});
    recording.calls[1].source = static_cast<std::uint32_t>(recording.sources.size() - 1);
    EXPECT_EQ(choose_process(recording, 0), 0u);
}

TEST(ChooseProcess, NeedsAnAllocation) {
    MadeRecording made(1);
    made.deallocate(0, 64);
    EXPECT_THROW(choose_process(made.get(), 0), CommandError);
    EXPECT_THROW(choose_process(trace::Recording{}, 0), CommandError);
}

}  // namespace
}  // namespace tensorpool::command::replay
