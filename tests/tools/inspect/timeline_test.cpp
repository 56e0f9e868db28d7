#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::testing::MadeRecording;

Timeline timeline_with(const Recording& recording, std::size_t stretches) {
    const History history(recording);
    return timeline_of(history, Groups(history, GroupBy::source), Groups(history, GroupBy::scope),
                       stretches);
}

TEST(Timeline, KeepsTheMaximumOfEachStretch) {
    MadeRecording made;
    made.allocate(0x10000, 100).time_ns = 0;
    made.allocate(0x20000, 900).time_ns = 10;
    made.deallocate(0x20000, 1024).time_ns = 20;
    made.allocate(0x30000, 50).time_ns = 90;
    made.deallocate(0x10000, 128).time_ns = 399;
    const Timeline timeline = timeline_with(made.recording(), 4);
    ASSERT_EQ(timeline.moments.size(), 4U);
    EXPECT_EQ(timeline.moments[0].time_ns, 10U);
    EXPECT_EQ(timeline.moments[0].level.alive_bytes, 1000U);
    EXPECT_EQ(timeline.moments[0].by_source[0], 1000U);
    // Nothing changed in this stretch, so the moment is its beginning.
    EXPECT_EQ(timeline.moments[1].time_ns, 100U);
    EXPECT_EQ(timeline.moments[1].level.alive_bytes, 150U);
    EXPECT_EQ(timeline.moments[2].level.alive_bytes, 150U);
    EXPECT_EQ(timeline.moments[3].time_ns, 300U);
    EXPECT_EQ(timeline.moments[3].level.alive_bytes, 150U);
}

TEST(Timeline, HasNoMoreMomentsThanNanoseconds) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    const Timeline timeline = timeline_with(made.recording(), 3);
    ASSERT_EQ(timeline.moments.size(), 1U);
    EXPECT_EQ(timeline.moments[0].level.alive_bytes, 100U);
    EXPECT_EQ(timeline.peak.level.alive_bytes, 100U);
}

TEST(Timeline, HasOneValueForEachName) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    const Timeline timeline = timeline_with(made.recording(), 1);
    EXPECT_EQ(timeline.sources, std::vector<std::string>{"global (pool)"});
    EXPECT_EQ(timeline.moments[0].by_source, std::vector<std::uint64_t>{100});
    EXPECT_EQ(timeline.moments[0].by_scope, std::vector<std::uint64_t>{100});
}

TEST(Timeline, ShowsTheLargestGroupsAndMergesTheRest) {
    MadeRecording made;
    for (std::uint64_t i = 0; i < 12; ++i) {
        const auto pool = made.source(TraceSource::pool, "pool " + std::to_string(i));
        made.allocate(0x100000 * (i + 1), 1000 + i, pool);
    }
    const Timeline timeline = timeline_with(made.recording(), 1);
    ASSERT_EQ(timeline.sources.size(), 8U);
    EXPECT_EQ(timeline.sources[0], "pool 11 (pool)");
    EXPECT_EQ(timeline.sources[7], "[others]");
    const auto& bytes = timeline.moments[0].by_source;
    EXPECT_EQ(bytes[0], 1011U);
    EXPECT_EQ(bytes[7], 1000U + 1001U + 1002U + 1003U + 1004U);
    std::uint64_t sum = 0;
    for (std::size_t k = 0; k < timeline.sources.size(); ++k) sum += bytes[k];
    EXPECT_EQ(sum, timeline.moments[0].level.alive_bytes);
}

TEST(Timeline, MeasuresPagesAndAddressesOfEachProcess) {
    MadeRecording made;
    const auto second = made.process("other", 8);
    const auto thread = made.thread(second, 80);
    const auto pool = made.source(TraceSource::pool, "global", second);
    made.allocate(0x10000, 64);
    made.allocate(0x10000, 64, pool).thread = thread;
    const Timeline timeline = timeline_with(made.recording(), 1);
    EXPECT_EQ(timeline.peak.level.page_bytes, 2 * 4096U);
    EXPECT_EQ(timeline.peak.level.used_bytes, 128U);
}

TEST(Timeline, RecordsHeldMemoryAndItsMaximum) {
    MadeRecording made;
    const auto arena = made.source(TraceSource::arena, "frame");
    made.hold(4096, arena);
    made.hold(8192);
    made.allocate(0x10000, 100).time_ns = 0;
    made.allocate(0x20000, 5000).time_ns = 110;
    made.deallocate(0x20000, 8192).time_ns = 150;
    made.hold(65536);
    made.call(TraceAction::refuse, 0, 1).time_ns = 210;
    made.hold(0);
    made.call(TraceAction::refuse, 0, 1).time_ns = 399;
    made.hold(1 << 20, arena);
    made.recording().capacities.back().time_ns = 500;  // after the last call
    const Timeline timeline = timeline_with(made.recording(), 4);
    EXPECT_TRUE(timeline.tells_held);
    ASSERT_EQ(timeline.moments.size(), 4U);
    EXPECT_EQ(timeline.moments[0].level.held_bytes, 4096U + 8192U);
    EXPECT_EQ(timeline.moments[1].level.held_bytes, 4096U + 8192U);
    EXPECT_EQ(timeline.moments[2].level.held_bytes, 4096U + 65536U);
    EXPECT_EQ(timeline.moments[3].level.held_bytes, 4096U);
    EXPECT_EQ(timeline.peak.level.held_bytes, 4096U + 8192U);
    EXPECT_EQ(timeline.max_held_bytes, 1U << 20);
}

TEST(Timeline, RecordsHeldMemoryBeforeTheFirstCall) {
    MadeRecording made;
    made.hold(4096);
    made.call(TraceAction::refuse, 0, 1).time_ns = 0;
    made.call(TraceAction::refuse, 0, 1).time_ns = 1;
    const Timeline timeline = timeline_with(made.recording(), 2);
    ASSERT_EQ(timeline.moments.size(), 2U);
    EXPECT_EQ(timeline.moments[0].level.held_bytes, 4096U);
}

TEST(Timeline, HasNoHeldMemoryWithoutCapacities) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    EXPECT_FALSE(timeline_with(made.recording(), 1).tells_held);
}

}  // namespace
}  // namespace tensorpool::command::inspect
