#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/export/exported.hpp"
#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::export_ {
namespace {

using trace::testing::MadeRecording;

class Snapshot : public ::testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "install python3";
    }

    nlohmann::json check(MadeRecording& made, At at, std::uint64_t entries = 1000) {
        const History history(made.recording());
        const std::string pickle = testing::written([&](WrittenFile& file) {
            left_out_ = write_snapshot(history, moment_of(history, at), entries, file);
        });
        const std::string answer = testing::checked_snapshot(pickle);
        return answer.empty() ? nlohmann::json() : nlohmann::json::parse(answer);
    }
    std::uint64_t left_out_ = 0;
};

TEST_F(Snapshot, HoldsThePeakInSegmentsWithoutGaps) {
    MadeRecording made;
    made.allocate(0x10000, 1000);  // in 1,024
    made.allocate(0x10400, 5000);  // in 8,192
    made.deallocate(0x10000, 1024);
    made.allocate(0x20000, 9000);
    made.deallocate(0x20000, 16384);
    const auto parsed = check(made, At::peak);
    EXPECT_EQ(parsed["allocated"], 14000);
    EXPECT_EQ(parsed["internal"], 8192 - 5000 + 16384 - 9000);
    EXPECT_EQ(parsed["external"], 1024 + 0x20000 - 0x10400 - 8192);
    ASSERT_EQ(parsed["segments"].size(), 1U);
    const auto& segment = parsed["segments"][0];
    EXPECT_EQ(segment["address"], 0x10000);
    EXPECT_EQ(segment["total_size"], 0x10000 + 16384);
    EXPECT_EQ(segment["tensorpool_source"], "global");
    ASSERT_EQ(segment["blocks"].size(), 4U);
    EXPECT_EQ(segment["blocks"][0]["state"], "inactive");
    EXPECT_EQ(segment["blocks"][1]["state"], "active_allocated");
    EXPECT_EQ(segment["blocks"][1]["requested_size"], 5000);
    // The history ends at the peak: three allocations, one free in two steps.
    ASSERT_EQ(parsed["traces"][0].size(), 5U);
    EXPECT_EQ(parsed["traces"][0][2]["action"], "free_requested");
    EXPECT_EQ(parsed["traces"][0][3]["action"], "free_completed");
    EXPECT_EQ(parsed["traces"][0][4]["size"], 9000);
    EXPECT_EQ(parsed["before"][0]["blocks"].size(), 0U);
    EXPECT_EQ(parsed["before"][0]["unmatched"], 0);
}

TEST_F(Snapshot, HoldsTheEndOnRequest) {
    MadeRecording made;
    made.recording().begun_unix_ns = 5'000'000'000;
    made.allocate(0x10000, 1000);
    made.allocate(0x20000, 9000);
    made.deallocate(0x20000, 16384);
    const auto parsed = check(made, At::end);
    EXPECT_EQ(parsed["allocated"], 1000);
    EXPECT_EQ(parsed["traces"][0].size(), 4U);
    EXPECT_EQ(parsed["traces"][0][1]["time_us"], 5'000'001);
}

TEST_F(Snapshot, SplitsPoolsAndDistantAddressesIntoSegments) {
    MadeRecording made;
    const auto other = made.source(TraceSource::arena, "frame");
    made.allocate(0x10000, 64);
    made.call(TraceAction::arena_allocate, 0x11000, 64, other);
    made.allocate(0x12000, 64);
    made.allocate(0x7f0000000000, 64);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 4U);
    EXPECT_EQ(parsed["segments"][1]["tensorpool_source"], "frame");
    EXPECT_EQ(parsed["segments"][3]["address"], 0x7f0000000000);
}

TEST_F(Snapshot, MakesEachProcessADevice) {
    MadeRecording made;
    const auto second = made.process("other", 8);
    const auto thread = made.thread(second, 80);
    const auto pool = made.source(TraceSource::pool, "global", second);
    made.allocate(0x10000, 64);
    made.allocate(0x10000, 100, pool).thread = thread;
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 2U);
    EXPECT_EQ(parsed["segments"][1]["device"], 1);
    EXPECT_EQ(parsed["traces"].size(), 2U);
    EXPECT_EQ(parsed["traces"][1][0]["size"], 100);
}

// Would take minutes if every block were searched for each process.
TEST_F(Snapshot, OfManyProcessesTakesTimeLinearInCalls) {
    MadeRecording made;
    for (std::uint64_t number = 100; number < 100'100; ++number) made.process("idle", number);
    for (int i = 0; i < 300'000; ++i) {
        made.allocate(0x10000, 1000);
        made.deallocate(0x10000, 1024);
    }
    const History history(made.recording());
    const std::string pickle = testing::written([&](WrittenFile& file) {
        EXPECT_EQ(write_snapshot(history, moment_of(history, At::end), 10, file), 599'990U);
    });
    EXPECT_TRUE(pickle.ends_with('.'));
}

TEST_F(Snapshot, KeepsTheLastCallsOfALongHistory) {
    MadeRecording made;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        made.allocate(0x10000 + i % 2 * 0x1000, 64 + i);
        made.deallocate(0x10000 + i % 2 * 0x1000, 8192);
    }
    made.allocate(0x10000, 1);
    const auto parsed = check(made, At::end, 2500);
    EXPECT_EQ(left_out_, 6001U - 2500U);
    EXPECT_EQ(parsed["traces"][0].size(), 2500U + 1250U);
    // The history begins with the end of a block.
    EXPECT_EQ(parsed["before"][0]["blocks"].size(), 1U);
    EXPECT_EQ(parsed["before"][0]["unmatched"], 0);
}

TEST_F(Snapshot, HoldsEarlierBlocksWithoutTheirAllocation) {
    MadeRecording made;
    made.allocate(0x20000, 64);
    made.deallocate(0x10000, 4096);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["before"][0]["blocks"].size(), 1U);
    EXPECT_EQ(parsed["before"][0]["blocks"][0], 0x10000);
}

TEST_F(Snapshot, CutsOverlappingBlocks) {
    MadeRecording made;
    const auto other = made.source(TraceSource::pool, "other");
    made.allocate(0x10000, 5000);
    made.allocate(0x10800, 5000);
    made.allocate(0x11000, 300, other);
    made.allocate(UINT64_MAX - 100, 5000);
    const auto parsed = check(made, At::end);
    EXPECT_LE(parsed["allocated"], 10'000 + 300 + 100);
}

TEST_F(Snapshot, NamesFramesOnce) {
    MadeRecording made;
    const auto module = made.module("/nowhere/\xff<program>");
    const auto stack = made.stack({{module, 0x10}, {module, 0x20}});
    made.allocate(0x10000, 64).stack = stack;
    made.allocate(0x20000, 64).stack = stack;
    made.allocate(0x30000, 64);
    const auto parsed = check(made, At::end);
    const auto& blocks = parsed["segments"][0]["blocks"];
    ASSERT_EQ(blocks[0]["frames"].size(), 2U);
    EXPECT_EQ(blocks[0]["frames"][0]["filename"], "/nowhere/\xEF\xBF\xBD<program>");
    EXPECT_EQ(blocks[0]["frames"][0]["name"], "\xEF\xBF\xBD<program>+0x10");
    EXPECT_EQ(blocks[2]["frames"], blocks[0]["frames"]);
    EXPECT_EQ(blocks.back()["frames"].size(), 0U);
}

TEST_F(Snapshot, IsValidWithoutLiveBlocks) {
    MadeRecording made;
    made.call(TraceAction::refuse, 0, 100);
    const auto parsed = check(made, At::peak);
    EXPECT_EQ(parsed["segments"].size(), 0U);
    EXPECT_EQ(parsed["traces"][0].size(), 0U);
}

constexpr auto from_device = TraceSource::device;

TEST_F(Snapshot, ListsDeviceAllocatorsAfterProcesses) {
    MadeRecording made;
    const auto weights = made.source(from_device, "weights");
    const auto pinned = made.source(from_device, "pinned");
    made.recording().streams.push_back(0x7f40);
    made.allocate(0x10000, 64);
    made.allocate(0x10000, 1000, weights).stream = 1;
    made.allocate(0x10000, 2000, pinned);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 3U);
    EXPECT_EQ(parsed["segments"][0]["device"], 0);
    EXPECT_EQ(parsed["segments"][1]["device"], 1);
    EXPECT_EQ(parsed["segments"][1]["stream"], 0x7f40);
    EXPECT_EQ(parsed["segments"][1]["tensorpool_source"], "weights");
    EXPECT_EQ(parsed["segments"][2]["device"], 2);
    ASSERT_EQ(parsed["traces"].size(), 3U);
    EXPECT_EQ(parsed["traces"][1][0]["stream"], 0x7f40);
    EXPECT_EQ(parsed["traces"][2][0]["size"], 2000);
}

TEST_F(Snapshot, HoldsTheSlabsOfADeviceAsSegments) {
    MadeRecording made;
    const auto device = made.source(from_device, "weights");
    made.call(TraceAction::slab, 0x200000, 0x200000, device);
    made.allocate(0x200000, 1000, device);
    made.call(TraceAction::slab, 0x800000, 0x200000, device);
    made.allocate(0x800000, 1000, device);
    made.deallocate(0x800000, 1024, device);
    made.call(TraceAction::slab_end, 0x800000, 0x200000, device);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 1U) << "the other slab was released";
    const auto& segment = parsed["segments"][0];
    EXPECT_EQ(segment["address"], 0x200000);
    EXPECT_EQ(segment["total_size"], 0x200000);
    EXPECT_EQ(segment["is_expandable"], false);
    EXPECT_EQ(segment["blocks"].size(), 2U);
    std::vector<std::string> actions;
    for (const auto& event : parsed["traces"][1]) actions.push_back(event["action"]);
    EXPECT_EQ(actions,
              (std::vector<std::string>{"segment_alloc", "alloc", "segment_alloc", "alloc",
                                        "free_requested", "free_completed", "segment_free"}));
    EXPECT_EQ(parsed["before"][1]["blocks"].size(), 0U);
    EXPECT_EQ(parsed["before"][1]["unmatched"], 0);
}

TEST_F(Snapshot, SlabsOfADestroyedAllocatorAreFreedAfterItsBlocks) {
    MadeRecording made;
    const auto device = made.source(from_device, "weights");
    made.call(TraceAction::slab, 0x200000, 0x200000, device);
    made.allocate(0x200000, 1000, device);
    made.call(TraceAction::gone, 0, 0, device);
    const auto parsed = check(made, At::end);
    EXPECT_EQ(parsed["segments"].size(), 0U);
    std::vector<std::string> actions;
    for (const auto& event : parsed["traces"][1]) actions.push_back(event["action"]);
    EXPECT_EQ(actions, (std::vector<std::string>{"segment_alloc", "alloc", "free_requested",
                                                 "free_completed", "segment_free"}));
}

TEST_F(Snapshot, ASlabThatGrewIsAnExpandableSegment) {
    MadeRecording made;
    const auto device = made.source(from_device, "weights");
    made.call(TraceAction::slab, 0x200000, 0x200000, device);
    made.call(TraceAction::slab, 0x400000, 0x200000, device);
    made.allocate(0x300000, 0x200000, device);
    made.call(TraceAction::slab, 0x600000, 0x200000, device);
    made.call(TraceAction::slab_end, 0x600000, 0x200000, device);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 1U);
    EXPECT_EQ(parsed["segments"][0]["total_size"], 0x400000);
    EXPECT_EQ(parsed["segments"][0]["is_expandable"], true);
    EXPECT_EQ(parsed["segments"][0]["blocks"][1]["size"], 0x200000) << "over both pieces";
    EXPECT_EQ(parsed["traces"][1][0]["action"], "segment_map");
    EXPECT_EQ(parsed["traces"][1][4]["action"], "segment_unmap");
}

TEST_F(Snapshot, MarksDeferredBlocksAsPending) {
    MadeRecording made;
    const auto device = made.source(from_device, "weights");
    made.call(TraceAction::slab, 0x200000, 0x200000, device);
    made.allocate(0x200000, 1000, device);
    made.allocate(0x300000, 3000, device);
    made.call(TraceAction::defer, 0x200000, 1024, device);
    made.call(TraceAction::defer, 0x300000, 3072, device);
    made.deallocate(0x300000, 3072, device);
    const auto parsed = check(made, At::end);
    const auto& segment = parsed["segments"][0];
    EXPECT_EQ(segment["blocks"][0]["state"], "active_pending_free");
    EXPECT_EQ(segment["allocated_size"], 0);
    EXPECT_EQ(segment["active_size"], 1000);
    std::vector<std::string> actions;
    for (const auto& event : parsed["traces"][1]) actions.push_back(event["action"]);
    EXPECT_EQ(actions,
              (std::vector<std::string>{"segment_alloc", "alloc", "alloc", "free_requested",
                                        "free_requested", "free_completed"}));
    EXPECT_EQ(parsed["before"][1]["blocks"].size(), 0U);
}

TEST_F(Snapshot, DeviceSegmentsFromBeforeTheRecordingFollowBlocks) {
    MadeRecording made;
    const auto device = made.source(from_device, "weights");
    made.allocate(0x10000, 1000, device);
    made.call(TraceAction::slab, 0x200000, 0x200000, device);
    made.allocate(0x200000, 1000, device);
    const auto parsed = check(made, At::end);
    ASSERT_EQ(parsed["segments"].size(), 2U);
    EXPECT_EQ(parsed["segments"][0]["total_size"], 1000);
    EXPECT_EQ(parsed["segments"][1]["total_size"], 0x200000);
}

}  // namespace
}  // namespace tensorpool::command::export_
