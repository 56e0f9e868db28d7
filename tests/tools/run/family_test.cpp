#include "formats/launch/launch.hpp"

#include <gtest/gtest.h>

#include <poll.h>

#include <cstdlib>

#include "run/report.hpp"
#include "tools/temporary_folder.hpp"
#include "tools/tensorpool/started_program.hpp"

namespace tensorpool::command::launch {
namespace {

/// A program that hands over its files, without `tensorpool run` around it.
class HandingOver : public ::testing::Test {
protected:
    HandingOver() {
        ::setenv("TENSORPOOL_OBSERVER", observer_.name().c_str(), 1);
        ::setenv("TENSORPOOL_TRACE", "observer", 1);
    }
    ~HandingOver() override {
        ::unsetenv("TENSORPOOL_OBSERVER");
        ::unsetenv("TENSORPOOL_TRACE");
    }
    Message message() {
        std::vector<Message> messages;
        pollfd events{observer_.descriptor(), POLLIN, 0};
        while (messages.empty() && ::poll(&events, 1, 60'000) == 1) {
            observer_.take([&](Message one) { messages.push_back(std::move(one)); });
        }
        return messages.empty() ? Message{} : std::move(messages.front());
    }
    static void wait_for(const Family& family) {
        pollfd events{family.descriptor(), POLLIN, 0};
        EXPECT_EQ(::poll(&events, 1, 60'000), 1);
    }

    Observer observer_;
    photos::TemporaryFolder folder_;
};

TEST_F(HandingOver, ReadsAProcessWhenItHasEnded) {
    StartedProgram program({TENSORPOOL_SUBJECT, "use", "7", "say", "used", "read", "use", "5"});
    Family family(nullptr);
    family.take(message());
    EXPECT_EQ(program.read_line(), "used");
    family.take_ended();
    EXPECT_EQ(family.results().processes(), 0U);
    program.write_line("");
    wait_for(family);
    family.take_ended();
    ASSERT_EQ(family.results().processes(), 1U);
    EXPECT_EQ(family.results().largest()[0].totals.allocations, 12U);
    EXPECT_TRUE(family.results().largest()[0].has_ended);
}

TEST_F(HandingOver, LooksAtEachProcessWhenItHasEnded) {
    StartedProgram program({TENSORPOOL_SUBJECT, "use", "7", "say", "used", "read"});
    std::vector<std::uint64_t> looked_at;
    Family family(
        nullptr,
        {.last = [&](StatisticsReader& one) { looked_at.push_back(one.process()); }, .live = {}});
    Message files = message();
    const auto process = static_cast<std::uint64_t>(files.process);
    family.take(std::move(files));
    EXPECT_EQ(program.read_line(), "used");
    EXPECT_TRUE(looked_at.empty());
    program.write_line("");
    wait_for(family);
    family.take_ended();
    EXPECT_EQ(looked_at, std::vector<std::uint64_t>{process});
}

TEST_F(HandingOver, ReadsARunningProcessAtTheEnd) {
    StartedProgram program({TENSORPOOL_SUBJECT, "use", "7", "say", "used", "read"});
    Family family(nullptr);
    family.take(message());
    EXPECT_EQ(program.read_line(), "used");
    family.finish();
    ASSERT_EQ(family.results().processes(), 1U);
    EXPECT_FALSE(family.results().largest()[0].has_ended);
}

TEST_F(HandingOver, EndsARecordingWhenTheFileIsFull) {
    StartedProgram program(
        {TENSORPOOL_SUBJECT, "use", "200000", "say", "1", "read", "use", "10", "say", "2", "read"});
    Message handed = message();
    ASSERT_EQ(handed.files.size(), 3U);
    const Descriptor control(::dup(handed.files[1].number()));
    run::TraceOutput full("/dev/full");
    Family family(&full);
    family.take(std::move(handed));
    while (!full.is_full()) family.take_entries();
    family.take_entries();
    EXPECT_EQ(program.read_line(), "1");
    // The fourth word of the control file is the request: even, and changed.
    std::uint64_t words[4] = {};
    ASSERT_EQ(::pread(control.number(), words, sizeof words, 0),
              static_cast<ssize_t>(sizeof words));
    EXPECT_EQ(words[3], 2U);
    program.write_line("");
    EXPECT_EQ(program.read_line(), "2");
}

TEST_F(HandingOver, AnInvalidSegmentIsReportedAsAProblem) {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    const Descriptor writing(ends[1]);
    Message message;
    message.process = ::getpid();
    message.files.emplace_back(ends[0]);
    Family family(nullptr);
    family.take(std::move(message));
    family.finish();
    EXPECT_EQ(family.results().processes(), 0U);
    ASSERT_EQ(family.results().problems().size(), 1U);
    EXPECT_EQ(family.results().problems()[0],
              "the segment handed over: the descriptor is not that of a file");
}

}  // namespace
}  // namespace tensorpool::command::launch
