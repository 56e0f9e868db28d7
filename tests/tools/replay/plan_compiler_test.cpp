#include "replay/plan.hpp"

#include <gtest/gtest.h>

#include "common/settings.hpp"
#include "made_recording.hpp"
#include "simulated_run.hpp"

namespace tensorpool::command::replay {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

Plan plan_of(const trace::Recording& recording, Offsets offsets = Offsets::no) {
    return compile(recording, 0, offsets);
}

std::vector<StepKind> kinds_of(const Plan& plan, std::size_t thread) {
    std::vector<StepKind> kinds;
    for (std::uint64_t i = 0; i < plan.threads[thread].count; ++i) {
        kinds.push_back(plan.steps[plan.threads[thread].first + i].kind());
    }
    return kinds;
}

TEST(PlanCompiler, KeepsTheOrderOfAThreadsCalls) {
    MadeRecording made(1);
    made.allocate(0, 64, 100, 7);
    made.allocate(0, 128, 200);
    made.deallocate(0, 64);
    made.allocate(0, 64, 300);
    const Plan plan = plan_of(made.get());
    ASSERT_EQ(plan.threads.size(), 2u);
    EXPECT_EQ(plan.threads[0].count, 0u);
    using enum StepKind;
    EXPECT_EQ(kinds_of(plan, 1), (std::vector{allocate, allocate, deallocate, allocate}));
    EXPECT_EQ(plan.steps[0].bytes(), 100u);
    EXPECT_EQ(plan.steps[0].alignment_log2(), 7u);
    EXPECT_EQ(plan.steps[3].bytes(), 300u);
    EXPECT_EQ(plan.steps[3].slot, plan.steps[0].slot) << "a slot used by one thread is reused";
    EXPECT_EQ(plan.slots, 2u);
}

TEST(PlanCompiler, CountsTheCallsOfTheRecording) {
    MadeRecording made(2);
    made.deallocate(0, 4096);
    made.allocate(0, 64, 100);
    made.allocate(1, 128, 1000);
    made.deallocate(1, 64);
    made.resize(1, 128, 900);
    const PlanStatistics statistics = plan_of(made.get()).statistics;
    EXPECT_EQ(statistics.threads, 2u);
    EXPECT_EQ(statistics.allocations, 3u);
    EXPECT_EQ(statistics.deallocations, 2u);
    EXPECT_EQ(statistics.resizes, 1u);
    EXPECT_EQ(statistics.from_before, 1u);
    EXPECT_EQ(statistics.never_freed, 1u);
    EXPECT_EQ(statistics.max_alive_bytes, 1100u);
}

TEST(PlanCompiler, FreeByAnotherThreadWaitsAndItsSlotIsNotReused) {
    MadeRecording made(2);
    made.allocate(0, 64, 100);
    made.deallocate(1, 64);
    made.allocate(1, 64, 200);
    const Plan plan = plan_of(made.get());
    const Step made_first = plan.steps[plan.threads[1].first + 1];
    EXPECT_TRUE(made_first.is_handover());
    const Step freed = plan.steps[plan.threads[2].first + 1];
    EXPECT_TRUE(freed.takes_over());
    EXPECT_EQ(freed.slot, made_first.slot);
    EXPECT_NE(plan.steps[plan.threads[2].first + 2].slot, freed.slot);
}

TEST(PlanCompiler, BlocksFromBeforeTheRecordingComeFirst) {
    MadeRecording made(1);
    made.allocate(0, 64, 100);
    made.add(0, TraceAction::deallocate, 4096, 5000, 0);
    const Plan plan = plan_of(made.get());
    ASSERT_EQ(plan.threads[0].count, 1u);
    EXPECT_EQ(plan.steps[0].bytes(), 5000u);
    EXPECT_FALSE(plan.steps[0].is_handover());
    EXPECT_FALSE(plan.steps.back().takes_over());
}

TEST(PlanCompiler, ReleaseFreesEachBlockOfAnArena) {
    MadeRecording made(1);
    trace::Recording& recording = made.get();
    recording.sources[1].kind = TraceSource::arena;
    made.add(0, TraceAction::arena_mark, 4096, 4096, 0);
    made.add(0, TraceAction::arena_allocate, 4096, 100, 6);
    made.add(0, TraceAction::arena_allocate, 4224, 200, 6);
    made.add(0, TraceAction::arena_release, 4096, 4096, 0);
    using enum StepKind;
    EXPECT_EQ(kinds_of(plan_of(recording), 1),
              (std::vector{allocate, allocate, deallocate, deallocate}));
}

TEST(PlanCompiler, ZeroBytesStillAllocateABlock) {
    MadeRecording made(1);
    made.allocate(0, 64, 0);
    EXPECT_EQ(plan_of(made.get()).steps.front().bytes(), 1u);
}

TEST(PlanCompiler, FindsTheMainThread) {
    MadeRecording made(3);
    made.allocate(2, 64, 1);
    made.allocate(0, 128, 1);
    const Plan plan = plan_of(made.get());
    ASSERT_EQ(plan.threads.size(), 3u);
    EXPECT_EQ(plan.threads[1].is_main, 0u);
    EXPECT_EQ(plan.threads[2].is_main, 1u);
}

TEST(PlanCompiler, NoDeadlockOrOverlapInAnyOrder) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        const Plan plan = plan_of(any_recording(seed, 1 + seed % 6, 400, mib));
        ASSERT_EQ(simulate(plan, seed).problem, "") << "seed " << seed;
    }
}

TEST(PlanCompiler, ThreadsDoTheSameInAnyOrder) {
    const Plan plan = plan_of(any_recording(7, 4, 1000, mib));
    const SimulatedRun first = simulate(plan, 1);
    EXPECT_EQ(simulate(plan, 2).results, first.results);
    EXPECT_EQ(first.results.size(), 5u);
}

/// Two threads that run one after the other hold as much as one thread. Without stages, they could
/// hold up to twice as much.
TEST(PlanCompiler, StagesLimitTheBytesAliveAtOnce) {
    MadeRecording made(2);
    for (std::uint32_t thread = 0; thread < 2; ++thread) {
        for (std::uint64_t i = 0; i < 200; ++i) made.allocate(thread, 64 * (i + 1), mib);
        for (std::uint64_t i = 0; i < 200; ++i) made.deallocate(thread, 64 * (i + 1));
    }
    const Plan plan = plan_of(made.get());
    EXPECT_EQ(plan.statistics.max_alive_bytes, 200 * mib);
    for (unsigned seed = 0; seed < 20; ++seed) {
        const SimulatedRun run = simulate(plan, seed);
        EXPECT_EQ(run.problem, "");
        EXPECT_LE(run.max_alive_bytes, 200 * mib + 200 * mib / 16 + mib) << seed;
    }
}

TEST(PlanCompiler, ASingleThreadHasNoStages) {
    const Plan plan = plan_of(any_recording(3, 1, 500, mib));
    for (const StepKind kind : kinds_of(plan, 1)) EXPECT_NE(kind, StepKind::stage);
}

TEST(PlanCompiler, OffsetsDoNotOverlapInRecordedOrder) {
    const Plan plan = plan_of(any_recording(5, 1, 2000, 10'000), Offsets::yes);
    ASSERT_EQ(plan.offsets.size(), plan.steps.size());
    std::vector<std::pair<std::uint64_t, std::uint64_t>> held(plan.slots);  // offset, bytes
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (step.kind() == StepKind::resize) held[step.from] = {};
        if (step.kind() == StepKind::deallocate) {
            held[step.slot] = {};
            continue;
        }
        for (const auto& [offset, bytes] : held) {
            EXPECT_TRUE(offset + bytes <= plan.offsets[i] ||
                        plan.offsets[i] + step.bytes() <= offset);
        }
        held[step.slot] = {plan.offsets[i], step.bytes()};
        EXPECT_LE(plan.offsets[i] + step.bytes(), plan.offsets_bytes);
    }
}

TEST(PlanCompiler, OffsetsLieWithinThePlan) {
    const Plan plan = plan_of(any_recording(6, 3, 2000, 10'000), Offsets::yes);
    ASSERT_EQ(plan.offsets.size(), plan.steps.size());
    EXPECT_EQ(plan.statistics.planned_bytes, plan.offsets_bytes);
    EXPECT_GE(plan.offsets_bytes, plan.statistics.max_alive_bytes);
    for (std::size_t i = 0; i < plan.steps.size(); ++i) {
        const Step& step = plan.steps[i];
        if (step.kind() == StepKind::stage || step.kind() == StepKind::deallocate) continue;
        EXPECT_LE(plan.offsets[i] + step.bytes(), plan.offsets_bytes);
    }
}

TEST(PlanCompiler, RejectsHugeBlocksAndAlignments) {
    MadeRecording made(1);
    made.allocate(0, 64, std::uint64_t{1} << 50);
    EXPECT_THROW(plan_of(made.get()), CommandError);
    MadeRecording aligned(1);
    aligned.allocate(0, 64, 1, 60);
    EXPECT_THROW(plan_of(aligned.get()), CommandError);
}

TEST(PlanCompiler, RejectsTooManyBytesAliveAtOnce) {
    MadeRecording made(1);
    const std::uint64_t half = (Step::max_bytes >> 1) + 1;
    made.allocate(0, 64, half);
    made.deallocate(0, 64);
    made.allocate(0, 64, half);
    EXPECT_EQ(plan_of(made.get()).statistics.max_alive_bytes, half);
    made.allocate(0, 128, half);
    EXPECT_THROW(plan_of(made.get()), CommandError);
}

}  // namespace
}  // namespace tensorpool::command::replay
