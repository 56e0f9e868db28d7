#include "events/timeline.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include "platform/platform.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"

namespace tensorpool::events {
namespace {

using statistics::entry_count;

using testing::holds_in_child;

/// Makes sure that there is a segment and that the child of a fork gets its own. Returns the number
/// of the last entry.
std::uint64_t last_entry() {
    EXPECT_TRUE(statistics::watch_forks());
    (void)statistics::segment().find_or_add<statistics::ScopeRecord>("timeline_test");
    return timeline_since().last;
}

TEST(Timeline, IgnoresEntriesWithoutSegment) {
    // Needs a process without a segment; whether this one has one depends on the tests before.
    if (statistics::segment().header() != nullptr)
        GTEST_SKIP() << "another test has made the segment";
    mark_timeline("never seen");
    const TimelinePart part = timeline_since();
    EXPECT_TRUE(part.entries.empty());
    EXPECT_EQ(part.last, 0U);
}

TEST(Timeline, ContainsMarksOfProgram) {
    const std::uint64_t before = last_entry();
    mark_timeline("epoch 7", 4096);
    const TimelinePart part = timeline_since(before);
    ASSERT_EQ(part.entries.size(), 1U);
    const TimelineEntry& entry = part.entries.front();
    EXPECT_EQ(entry.number, before + 1);
    EXPECT_EQ(entry.kind, EntryKind::mark);
    EXPECT_EQ(entry.limit, LimitKind::none);
    EXPECT_EQ(entry.name, "epoch 7");
    EXPECT_EQ(entry.bytes, 4096U);
    EXPECT_EQ(entry.thread, platform::current_thread_id());
}

TEST(Timeline, ReportsLimitKind) {
    const std::uint64_t before = last_entry();
    write_entry(EntryKind::failure, LimitKind::records, 64, "pool");
    const TimelinePart part = timeline_since(before);
    ASSERT_EQ(part.entries.size(), 1U);
    EXPECT_EQ(part.entries.front().kind, EntryKind::failure);
    EXPECT_EQ(part.entries.front().limit, LimitKind::records);
}

TEST(Timeline, TimesMatchWallClock) {
    const std::uint64_t before = last_entry();
    const std::uint64_t begin = platform::wall_clock_ns();
    mark_timeline("now");
    const std::uint64_t end = platform::wall_clock_ns();
    constexpr std::uint64_t allowed = 60'000'000'000;  // the clock may be set in between
    const std::uint64_t time = timeline_since(before).entries.at(0).time_ns;
    EXPECT_GT(time + allowed, begin);
    EXPECT_LT(time, end + allowed);
}

TEST(Timeline, FullTimelineCountsLostEntries) {
    const std::uint64_t before = last_entry();
    for (std::size_t i = 0; i < entry_count + 10; ++i) mark_timeline("many", i);
    const TimelinePart part = timeline_since(before);
    EXPECT_EQ(part.entries.size(), entry_count);
    EXPECT_EQ(part.lost, 10U);
    EXPECT_EQ(part.entries.front().bytes, 10U);
}

TEST(Timeline, EveryThreadWritesEntries) {
    const std::uint64_t before = last_entry();
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            for (int j = 0; j < 100; ++j) mark_timeline("thread");
        });
    }
    for (std::thread& thread : threads) thread.join();
    const TimelinePart part = timeline_since(before);
    EXPECT_EQ(part.entries.size(), 400U);
    EXPECT_EQ(part.lost, 0U);
}

TEST(Timeline, ForkedChildHasOwnCopy) {
    const std::uint64_t before = last_entry();
    mark_timeline("before");
    EXPECT_TRUE(holds_in_child([&] {
        mark_timeline("child");
        const TimelinePart part = timeline_since(before);
        return part.entries.size() == 2 && part.entries[1].name == "child" && part.lost == 0;
    }));
    EXPECT_EQ(timeline_since(before).entries.size(), 1U) << "the child's entry is not here";
}

TEST(Timeline, ForkedChildCanAlwaysWrite) {
    last_entry();
    std::atomic<bool> done = false;
    std::thread busy([&] {
        while (!done) mark_timeline("busy");
    });
    for (int i = 0; i < 20; ++i) {
        EXPECT_TRUE(holds_in_child([] {
            const std::uint64_t before = timeline_since().last;
            for (std::size_t j = 0; j < entry_count; ++j) mark_timeline("child");
            return timeline_since(before).entries.size() == entry_count;
        }));
    }
    done = true;
    busy.join();
}

}  // namespace
}  // namespace tensorpool::events
