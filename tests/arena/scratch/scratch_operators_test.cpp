// The statistics of named scopes.

#include "arena/scratch/scratch_state.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

void run(std::string_view name, std::size_t bytes) {
    const ScratchScope scope(name);
    fill(Scratch::local().allocate(bytes), bytes, 1);
}

TEST(ScratchOperators, ReturnTheSameOperatorForTheSameName) {
    arena::ScratchOperators operators;
    std::string name = "one";
    const arena::ScratchOperators::Entry one = operators.find_or_add(name);
    name = "two";
    EXPECT_NE(operators.find_or_add(name).found, one.found);
    EXPECT_EQ(operators.find_or_add("one").found, one.found);
    EXPECT_EQ(one.name, "one");
    EXPECT_EQ(operators.report().operators.size(), 2U);
}

TEST(ScratchOperators, ReportIsSortedByPeak) {
    arena::ScratchOperators operators;
    for (const auto& [name, peak] : {std::pair{"b", 5U}, {"d", 7U}, {"a", 5U}, {"c", 1U}}) {
        operators.find_or_add(name).found->peak_bytes = peak;
    }
    std::string order;
    for (const OperatorScratch& one : operators.report().operators) order += one.name;
    EXPECT_EQ(order, "dabc");
}

TEST(ScratchOperator, CountsCallsAndPeakOfEndedScopes) {
    in_new_thread([] {
        constexpr auto name = "ScratchOperator.counts";
        EXPECT_EQ(operator_named(name).calls, 0U);
        run(name, 1000);
        run(name, 5000);
        run(name, 100);
        EXPECT_EQ(operator_named(name).calls, 3U);
        EXPECT_EQ(operator_named(name).peak_bytes, 5056U);
        const ScratchScope open(name);
        Scratch::local().allocate(10'000);
        EXPECT_EQ(operator_named(name).calls, 3U);
        EXPECT_EQ(operator_named(name).peak_bytes, 5056U);
    });
}

TEST(ScratchOperator, PeakIncludesNestedScopes) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.allocate(100 * kib);
        {
            const ScratchScope outer("ScratchOperator.outer");
            scratch.allocate(1 * kib);
            {
                const ScratchScope without_a_name;
                scratch.allocate(20 * kib);
                run("ScratchOperator.inner", 30 * kib);
                run("ScratchOperator.inner", 10 * kib);
            }
            scratch.allocate(2 * kib);
        }
        EXPECT_EQ(operator_named("ScratchOperator.outer").peak_bytes, 51 * kib);
        EXPECT_EQ(operator_named("ScratchOperator.inner").peak_bytes, 30 * kib);
        EXPECT_EQ(operator_named("ScratchOperator.inner").calls, 2U);
        EXPECT_EQ(scratch.peak(), 151 * kib);
    });
}

TEST(ScratchOperator, PeakExcludesEarlierScopes) {
    in_new_thread([] {
        const ScratchScope outer;
        run("ScratchOperator.before", 300 * kib);
        run("ScratchOperator.after", 1 * kib);
        EXPECT_EQ(operator_named("ScratchOperator.after").peak_bytes, 1 * kib);
        EXPECT_EQ(Scratch::local().peak(), 300 * kib);
    });
}

TEST(ScratchOperator, PeakIncludesReleasedBytes) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope("ScratchOperator.release");
            const Scratch::Mark mark = scratch.mark();
            scratch.allocate(40 * kib);
            scratch.release_to(mark);
            scratch.allocate(10 * kib);
        }
        EXPECT_EQ(operator_named("ScratchOperator.release").peak_bytes, 40 * kib);
    });
}

TEST(ScratchOperator, MayCallItself) {
    in_new_thread([] {
        constexpr auto name = "ScratchOperator.recursive";
        {
            const ScratchScope outer(name);
            Scratch::local().allocate(1 * kib);
            run(name, 4 * kib);
        }
        EXPECT_EQ(operator_named(name).calls, 2U);
        EXPECT_EQ(operator_named(name).peak_bytes, 5 * kib);
    });
}

TEST(ScratchOperator, GrowthCountsForTheInnermostOperator) {
    in_new_thread([] {
        {
            const ScratchScope outer("ScratchOperator.calm");
            run("ScratchOperator.grows", 3 * mib);
            const ScratchScope without_a_name;
            Scratch::local().allocate(600 * kib);
        }
        EXPECT_EQ(operator_named("ScratchOperator.calm").growths, 0U);
        EXPECT_EQ(operator_named("ScratchOperator.grows").growths, 1U);
        EXPECT_EQ(operator_named("ScratchOperator.grows").grown_bytes, 3 * mib);
        {
            const ScratchScope outer("ScratchOperator.calm");
            Scratch::local().allocate(20 * mib);
        }
        EXPECT_EQ(operator_named("ScratchOperator.calm").growths, 1U);
    });
}

TEST(ScratchOperator, SecondRunDoesNotGrow) {
    constexpr auto name = "ScratchOperator.second";
    in_new_thread([] {
        for (int i = 0; i < 2; ++i) {
            const ScratchScope scope(name);
            for (int j = 0; j < 10; ++j) Scratch::local().allocate(900 * kib);
        }
        EXPECT_LT(operator_named(name).growths, 10U);
        EXPECT_EQ(Scratch::local().statistics().growths, operator_named(name).growths + 2);
    });
}

TEST(ScratchOperator, PeakIsReservedOnOtherThreads) {
    constexpr auto name = "ScratchOperator.ready";
    const auto work = [](Scratch& scratch) {
        const std::uint64_t growths = scratch.statistics().growths;
        for (int j = 0; j < 10; ++j) fill(scratch.allocate(900 * kib), 900 * kib, 1);
        return scratch.statistics().growths - growths;
    };
    in_new_thread([&] {
        const ScratchScope scope(name);
        EXPECT_GT(work(Scratch::local()), 1U);
    });
    in_new_thread([&] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope(name);
            EXPECT_EQ(scratch.statistics().growths, 2U);
            EXPECT_GE(scratch.capacity(), 9000 * kib);
            EXPECT_EQ(work(scratch), 0U);
        }
        const ScratchScope outer;
        scratch.allocate(100);
        const ScratchScope scope(name);
        EXPECT_EQ(work(scratch), 0U);
    });
}

TEST(ScratchOperator, ReservedMemoryStaysAfterASmallRun) {
    constexpr auto name = "ScratchOperator.seldom";
    in_new_thread([] { run(name, 30 * mib); });
    in_new_thread([] {
        run(name, 1 * kib);
        const std::uint64_t growths = Scratch::local().statistics().growths;
        for (int round = 0; round < 3; ++round) run(name, 1 * kib);
        run(name, 30 * mib);
        EXPECT_EQ(Scratch::local().statistics().growths, growths);
    });
}

TEST(ScratchOperator, ReservedMemoryHasRoomForAlignedBlocks) {
    constexpr auto name = "ScratchOperator.aligned";
    const auto work = [] {
        Scratch::local().allocate(300 * kib);
        EXPECT_TRUE(is_aligned(fill(Scratch::local().allocate(mib, mib), mib, 1), mib));
    };
    in_new_thread([&] {
        const ScratchScope scope(name);
        work();
    });
    in_new_thread([&] {
        const ScratchScope scope(name);
        const std::uint64_t growths = Scratch::local().statistics().growths;
        work();
        EXPECT_EQ(Scratch::local().statistics().growths, growths);
    });
}

TEST(ScratchOperator, CountsRunsOfConcurrentThreads) {
    constexpr auto name = "ScratchOperator.threads";
    std::vector<std::thread> threads;
    for (std::size_t number = 1; number <= 4; ++number) {
        threads.emplace_back([number] {
            for (std::size_t i = 1; i <= 100; ++i) run(name, number * i * 64);
        });
    }
    while (operator_named(name).calls < 100) static_cast<void>(to_json(scratch_report()));
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(operator_named(name).calls, 400U);
    EXPECT_EQ(operator_named(name).peak_bytes, 400U * 64U);
}

}  // namespace
}  // namespace tensorpool
