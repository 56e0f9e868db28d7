#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include "made_recording.hpp"
#include "replay/allocator_task.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool::command::replay {
namespace {

constexpr int refused_code = 3;
constexpr int overwritten_code = 4;
constexpr PlayFailures ending = {[](std::uint64_t) { _exit(refused_code); },
                                 [](const void*, std::uint64_t) { _exit(overwritten_code); }};

/// Plays a recording of one thread and checks its blocks.
template <class Calls>
PlayCounts play(const trace::Recording& recording, Touch touch = Touch::check) {
    const Plan plan = compile(recording, 0, Offsets::no);
    std::vector<Slot> slots(plan.slots);
    std::vector<Signal> handovers(plan.slots);
    Stage stage;
    stage.plan.threads = plan.threads;
    stage.plan.steps = plan.steps;
    stage.slots = slots;
    stage.handovers = handovers;
    stage.touch = touch;
    Play<Calls> play(stage, ending);
    play.play(plan.threads[0]);
    return play.play(plan.threads[1]);
}

trace::Recording two_blocks() {
    MadeRecording made(1);
    made.allocate(0, 64, 100);
    made.allocate(0, 128, 100);
    made.deallocate(0, 64);
    made.deallocate(0, 128);
    return std::move(made.get());
}

trace::Recording one_resize() {
    MadeRecording made(1);
    made.allocate(0, 64, 100);
    made.resize(0, 64, 200);
    made.deallocate(0, 64);
    return std::move(made.get());
}

/// Returns the same block for each request.
struct Overlapping : MallocCalls {
    static void* allocate(const Step&, std::uint64_t) noexcept {
        static std::byte block[4096];
        return block;
    }
    static void deallocate(void*) noexcept {}
};

/// Loses the content of a block in a resize.
struct Forgetful : MallocCalls {
    static void* resize(void* block, std::uint64_t, const Step& step, std::uint64_t) noexcept {
        std::free(block);
        return std::calloc(step.bytes(), 1);
    }
};

struct Refusing : MallocCalls {
    static void* allocate(const Step&, std::uint64_t) noexcept { return nullptr; }
};

TEST(Play, CountsItsCalls) {
    const PlayCounts counts = play<MallocCalls>(one_resize());
    EXPECT_EQ(counts.allocations, 1u);
    EXPECT_EQ(counts.resizes, 1u);
    EXPECT_EQ(counts.deallocations, 1u);
}

TEST(Play, WorksWithMallocAndThePool) {
    for (unsigned seed = 0; seed < 5; ++seed) {
        const trace::Recording recording = any_recording(seed, 1, 2000, 100'000);
        const PlanStatistics statistics = compile(recording, 0, Offsets::no).statistics;
        const PlayCounts by_malloc = play<MallocCalls>(recording);
        const PlayCounts by_pool = play<GlobalPoolCalls>(recording);
        EXPECT_EQ(by_malloc.allocations + statistics.from_before, statistics.allocations);
        EXPECT_EQ(by_malloc.allocations, by_pool.allocations);
        EXPECT_EQ(by_pool.deallocations, statistics.deallocations);
        EXPECT_EQ(by_pool.resizes, statistics.resizes);
    }
}

using PlayDeathTest = ::testing::Test;

TEST(PlayDeathTest, DetectsOverlappingBlocks) {
    EXPECT_EXIT(play<Overlapping>(two_blocks()), ::testing::ExitedWithCode(overwritten_code), "");
}

TEST(PlayDeathTest, DetectsAResizeThatLosesTheContent) {
    EXPECT_EXIT(play<Forgetful>(one_resize()), ::testing::ExitedWithCode(overwritten_code), "");
}

TEST(PlayDeathTest, DetectsAFailedRequest) {
    EXPECT_EXIT(play<Refusing>(two_blocks(), Touch::none), ::testing::ExitedWithCode(refused_code),
                "");
}

ReplayAnswer perform_here(const trace::Recording& recording, Calls calls, Touch touch) {
    const Plan plan = compile(recording, 0, calls == Calls::floor ? Offsets::yes : Offsets::no);
    const Descriptor file = file_of(plan);
    PlanView view;
    EXPECT_TRUE(map_plan(file.number(), view));
    ReplayAnswer answer = {};
    perform({.calls = calls, .touch = touch, .plan = file.number()}, view, answer);
    return answer;
}

/// Many threads wait for blocks of each other, and each block is checked. A wait that ends too
/// early finds another block or none; a lost signal hangs the test.
TEST(Performance, ManyThreadsWaitForEachOthersBlocks) {
    for (unsigned seed = 0; seed < 6; ++seed) {
        const trace::Recording recording = any_recording(seed, 24, 12'000, 3000);
        const PlanStatistics statistics = compile(recording, 0, Offsets::no).statistics;
        for (const Calls calls : {Calls::malloc, Calls::pool}) {
            const ReplayAnswer answer = perform_here(recording, calls, Touch::check);
            EXPECT_EQ(answer.allocations, statistics.allocations);
            EXPECT_EQ(answer.deallocations, statistics.deallocations);
            EXPECT_EQ(answer.resizes, statistics.resizes);
        }
    }
}

TEST(Performance, FloorPlaysTheSameCalls) {
    const trace::Recording recording = any_recording(9, 5, 5000, 3000);
    const ReplayAnswer answer = perform_here(recording, Calls::floor, Touch::none);
    EXPECT_EQ(answer.allocations, compile(recording, 0, Offsets::no).statistics.allocations);
}

/// 64 MiB in 16 blocks: each page is touched once, and no other page becomes resident.
TEST(Performance, MeasuresFaultsAndThePeak) {
    if (testing::sanitized()) GTEST_SKIP() << "a sanitizer's shadow is resident too";
    MadeRecording made(1);
    constexpr std::uint64_t bytes = std::uint64_t{4} << 20;
    for (std::uint64_t i = 1; i <= 16; ++i) made.allocate(0, i * 64, bytes);
    for (std::uint64_t i = 1; i <= 16; ++i) made.deallocate(0, i * 64);
    const ReplayAnswer touched = perform_here(made.get(), Calls::floor, Touch::first);
    const std::uint64_t grown = touched.peak_bytes - touched.own_bytes;
    EXPECT_NEAR(static_cast<double>(grown), 16.0 * bytes, 2e6);
    EXPECT_NEAR(static_cast<double>(touched.minor_faults), 16.0 * bytes / 4096, 300);
    EXPECT_GT(touched.elapsed_ns, 0u);
    EXPECT_GT(touched.user_ns + touched.system_ns, 0u);
    const ReplayAnswer left_alone = perform_here(made.get(), Calls::floor, Touch::none);
    EXPECT_LT(left_alone.minor_faults, 300u);
}

}  // namespace
}  // namespace tensorpool::command::replay
