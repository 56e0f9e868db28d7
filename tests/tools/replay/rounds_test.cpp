#include "replay/report.hpp"

#include <gtest/gtest.h>

#include "made_recording.hpp"
#include "replay/plan.hpp"

namespace tensorpool::command::replay {
namespace {

ReplayAnswer answer(std::uint64_t seconds, std::uint64_t peak_bytes) {
    ReplayAnswer made = {};
    made.elapsed_ns = seconds * 1'000'000'000;
    made.user_ns = made.elapsed_ns;
    made.system_ns = made.elapsed_ns / 2;
    made.own_bytes = 100;
    made.peak_bytes = 100 + peak_bytes;
    return made;
}

TEST(Rounds, AreSummarizedByMediansAndRatios) {
    std::vector<Result> results(2);
    results[0].allocator = "glibc";
    results[0].rounds = {answer(2, 300), answer(20, 300), answer(3, 300)};
    results[1].allocator = "pool";
    results[1].rounds = {answer(1, 200), answer(10, 200), answer(1, 200)};
    sum_up(results, {.max_alive_bytes = 150});
    EXPECT_DOUBLE_EQ(results[0].elapsed_s.value, 3);
    EXPECT_DOUBLE_EQ(results[0].elapsed_s.to_pool.value(), 2);
    EXPECT_DOUBLE_EQ(results[0].cpu_s.value, 4.5);
    EXPECT_DOUBLE_EQ(results[0].system_s.value, 1.5);
    EXPECT_DOUBLE_EQ(results[0].peak_resident_bytes.value, 300);
    EXPECT_DOUBLE_EQ(results[0].waste, 2);
    EXPECT_DOUBLE_EQ(results[1].elapsed_s.to_pool.value(), 1);
    EXPECT_FALSE(results[0].minor_faults.to_pool.has_value()) << "the pool's value is 0";
}

TEST(Rounds, HaveNoRatiosWithoutThePool) {
    std::vector<Result> results(1);
    results[0].allocator = "glibc";
    results[0].rounds = {answer(2, 0), answer(4, 0)};
    sum_up(results, {});
    EXPECT_DOUBLE_EQ(results[0].elapsed_s.value, 3);
    EXPECT_FALSE(results[0].elapsed_s.to_pool.has_value());
    EXPECT_EQ(results[0].waste, 0);
}

TEST(Rounds, RunEachAllocatorInEachRound) {
    MadeRecording made(2);
    made.allocate(0, 64, 1000);
    made.deallocate(1, 64);
    const Plan plan = compile(made.get(), 0, Offsets::yes);
    const Descriptor file = file_of(plan);
    const std::vector<std::string> names = {"none", "pool"};
    const std::vector<Result> results =
        play_rounds(allocators_of(names, {}), 3, Touch::all, file.number(), plan.statistics);
    ASSERT_EQ(results.size(), 2u);
    for (const Result& result : results) {
        ASSERT_EQ(result.rounds.size(), 3u);
        for (const ReplayAnswer& round : result.rounds) {
            EXPECT_EQ(round.allocations, 1u);
            EXPECT_EQ(round.deallocations, 1u);
        }
    }
}

}  // namespace
}  // namespace tensorpool::command::replay
