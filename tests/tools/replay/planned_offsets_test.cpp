#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include "made_recording.hpp"

namespace tensorpool::command::replay {
namespace {

MemoryPlan plan_of(const trace::Recording& recording) {
    return planned_offsets(recording, blocks_of(recording, 0));
}

TEST(PlannedOffsets, BlocksNotAliveAtOnceShareAnOffset) {
    MadeRecording made(1);
    made.allocate(0, 64, 1000);
    made.deallocate(0, 64);
    made.allocate(0, 128, 1000);
    const MemoryPlan plan = plan_of(made.get());
    EXPECT_EQ(plan.offsets, (std::vector<std::uint64_t>{0, 0}));
    EXPECT_EQ(plan.peak_bytes, 1000u);
}

TEST(PlannedOffsets, BlocksNeverFreedKeepTheirOffset) {
    MadeRecording made(1);
    made.allocate(0, 64, 1000);
    made.allocate(0, 128, 640);
    made.deallocate(0, 128);
    made.allocate(0, 256, 640);
    const MemoryPlan plan = plan_of(made.get());
    EXPECT_EQ(plan.lower_bound_bytes, 1640u);
    EXPECT_EQ(plan.offsets[1], plan.offsets[2]);
}

TEST(PlannedOffsets, AreAlignedAsInThePoolOrAsRequested) {
    MadeRecording made(1);
    made.allocate(0, 64, 1, 0);
    made.allocate(0, 128, 1, 12);
    made.allocate(0, 192, 1, 3);
    const MemoryPlan plan = plan_of(made.get());
    EXPECT_EQ(plan.offsets[0] % 64, 0u);
    EXPECT_EQ(plan.offsets[1] % 4096, 0u);
    EXPECT_EQ(plan.offsets[2] % 64, 0u);
}

TEST(PlannedOffsets, DoNotOverlapInAnyRecording) {
    for (unsigned seed = 0; seed < 20; ++seed) {
        const trace::Recording recording = any_recording(seed, 1 + seed % 3, 300, 10'000);
        const LifetimeOrder order = blocks_of(recording, 0);
        const MemoryPlan plan = planned_offsets(recording, order);
        std::vector<std::size_t> alive;
        order.walk(
            [&](std::size_t lifetime) {
                const std::uint64_t begin = plan.offsets[lifetime];
                const std::uint64_t bytes = order.lifetimes()[lifetime].bytes;
                EXPECT_LE(begin + bytes, plan.peak_bytes);
                for (const std::size_t other : alive) {
                    const std::uint64_t at = plan.offsets[other];
                    EXPECT_TRUE(at + order.lifetimes()[other].bytes <= begin ||
                                begin + bytes <= at);
                }
                alive.push_back(lifetime);
            },
            [&](std::size_t lifetime) { std::erase(alive, lifetime); });
    }
}

}  // namespace
}  // namespace tensorpool::command::replay
