#include <tensorpool/statistics_scope.hpp>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/timeline.hpp>

#include "events/misuse.hpp"
#include "statistics/fake_counters.hpp"
#include "statistics/scopes/scope_table.hpp"
#include "support/child_process.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

using statistics::look_at_scopes;
using testing::FakeCounters;
using testing::holds_in_child;
using testing::statistics_of_scope;

/// The name of the running test, so that scopes of other tests are not included.
std::string own_name() {
    return ::testing::UnitTest::GetInstance()->current_test_info()->name();
}

std::uint64_t failed_orders() {
    const auto order = static_cast<unsigned>(statistics::CheckKind::scope_order);
    const statistics::SegmentHeader* const header = statistics::segment().header();
    return header == nullptr ? 0 : header->failed_checks[order].load();
}

std::vector<TimelineEntry> entries_of(EntryKind kind, const std::string& name) {
    std::vector<TimelineEntry> found;
    for (const TimelineEntry& entry : timeline_since().entries) {
        if (entry.kind == kind && name.starts_with(entry.name)) found.push_back(entry);
    }
    return found;
}

TEST(StatisticsScope, CountsCallsOfItsThread) {
    FakeCounters counters;
    counters.allocate(0, 10);
    {
        const StatisticsScope scope("counts inside");
        counters.allocate(1, 3);
        counters.allocate_large(100'000);
        counters.free(0, 4);
    }
    counters.allocate(0, 10);
    const ScopeStatistics statistics = statistics_of_scope("counts inside");
    EXPECT_EQ(statistics.calls, 1U);
    EXPECT_EQ(statistics.open, 0U);
    EXPECT_EQ(statistics.allocations, 4U);
    EXPECT_EQ(statistics.deallocations, 4U);
    EXPECT_EQ(statistics.requested_bytes, 3U * 127 + 99'999);
    EXPECT_EQ(statistics.allocated_bytes, 3U * 128 + 100'000);
    EXPECT_EQ(statistics.deallocated_bytes, 4U * 64);
    EXPECT_EQ(statistics.growth_bytes(), 3 * 128 + 100'000 - 4 * 64);
    EXPECT_EQ(statistics.out_of_order, 0U);
}

TEST(StatisticsScope, CountsNothingWhileItIsPaused) {
    const std::string name = own_name();
    FakeCounters counters;
    {
        StatisticsScope scope(name);
        counters.allocate_large(100'000);
        scope.pause();
        scope.pause();
        counters.allocate_large(1'000'000);
        counters.free_large(100'000);
        EXPECT_EQ(scope.statistics().allocated_bytes, 100'000U);
        EXPECT_EQ(scope.growth().bytes, 100'000);
        EXPECT_EQ(statistics_of_scope(name).open, 1U);
        scope.resume();
        scope.resume();
        counters.allocate_large(50'000);
    }
    const ScopeStatistics statistics = statistics_of_scope(name);
    EXPECT_EQ(statistics.calls, 1U);
    EXPECT_EQ(statistics.open, 0U);
    EXPECT_EQ(statistics.allocations, 2U);
    EXPECT_EQ(statistics.deallocations, 0U);
    EXPECT_EQ(statistics.peak_bytes, 150'000U);
    EXPECT_EQ(statistics.out_of_order, 0U);
}

TEST(StatisticsScope, KeepsThePeakOfBeforeAPause) {
    FakeCounters counters;
    StatisticsScope scope(own_name());
    counters.allocate_large(900'000);
    counters.free_large(900'000);
    scope.pause();
    counters.allocate_large(5'000'000);
    EXPECT_EQ(scope.statistics().peak_bytes, 900'000U);
    scope.resume();
    counters.allocate_large(400'000);
    EXPECT_EQ(scope.statistics().peak_bytes, 900'000U);
    counters.free_large(5'000'000);
    counters.free_large(400'000);
}

TEST(StatisticsScope, PausedScopeRaisesNoPeakAroundIt) {
    FakeCounters counters;
    StatisticsScope outer(own_name());
    StatisticsScope inner(own_name() + "'s inner");
    counters.allocate_large(900'000);
    counters.free_large(900'000);
    inner.pause();
    counters.allocate_large(400'000);
    inner.resume();
    counters.allocate_large(100'000);
    inner.pause();
    EXPECT_EQ(outer.statistics().peak_bytes, 900'000U);
    counters.free_large(400'000);
    counters.free_large(100'000);
}

TEST(StatisticsScope, MayEndWhileItIsPaused) {
    const std::string name = own_name();
    FakeCounters counters;
    {
        StatisticsScope scope(name);
        const StatisticsScope inside(name + "'s inside");
        counters.allocate_large(100'000);
        scope.pause();
        counters.allocate_large(100'000);
    }
    const ScopeStatistics statistics = statistics_of_scope(name);
    EXPECT_EQ(statistics.calls, 1U);
    EXPECT_EQ(statistics.open, 0U);
    EXPECT_EQ(statistics.allocated_bytes, 100'000U);
    EXPECT_EQ(statistics.peak_bytes, 100'000U);
    EXPECT_EQ(statistics.out_of_order, 0U);
}

TEST(StatisticsScope, GoesOnOnAnotherThread) {
    const std::string name = own_name();
    FakeCounters counters;
    auto scope = std::make_unique<StatisticsScope>(name);
    counters.allocate_large(100'000);
    scope->pause();
    std::thread([&] {
        FakeCounters there;
        there.allocate_large(10'000);
        scope->resume();
        there.allocate_large(200'000);
        scope->pause();
    }).join();
    EXPECT_EQ(scope->statistics().allocated_bytes, 300'000U);
    scope.reset();
    EXPECT_EQ(statistics_of_scope(name).allocations, 2U);
    EXPECT_EQ(statistics_of_scope(name).out_of_order, 0U);
}

TEST(StatisticsScope, OtherThreadCannotPauseIt) {
    FakeCounters counters;
    StatisticsScope scope(own_name());
    std::thread([&] { scope.pause(); }).join();
    counters.allocate_large(100'000);
    EXPECT_EQ(scope.statistics().allocated_bytes, 100'000U);
}

TEST(StatisticsScope, IsOpenUntilItEnds) {
    const std::string name = own_name();
    {
        const StatisticsScope one(name), two(name);
        EXPECT_EQ(statistics_of_scope(name).open, 2U);
        EXPECT_EQ(statistics_of_scope(name).calls, 0U);
    }
    EXPECT_EQ(statistics_of_scope(name).open, 0U);
    EXPECT_EQ(statistics_of_scope(name).calls, 2U);
}

TEST(StatisticsScope, OuterScopesIncludeInnerScopes) {
    FakeCounters counters;
    {
        const StatisticsScope outer("around");
        counters.allocate(0);
        {
            const StatisticsScope inner("inside");
            counters.allocate(0, 2);
        }
    }
    EXPECT_EQ(statistics_of_scope("around").allocations, 3U);
    EXPECT_EQ(statistics_of_scope("inside").allocations, 2U);
}

TEST(StatisticsScope, PeakIsHighestMeasuredGrowth) {
    FakeCounters counters;
    {
        const StatisticsScope scope("peak");
        counters.allocate_large(1 << 20);
        counters.allocate_large(1 << 20);
        counters.free_large(1 << 20);
        counters.free_large(1 << 20);
        counters.allocate(0, 5);
        counters.free(0, 5);  // without a measurement in between
    }
    EXPECT_EQ(statistics_of_scope("peak").peak_bytes, 2U << 20);
    {
        const StatisticsScope scope("peak of the end");
        counters.allocate(0, 5);
    }
    EXPECT_EQ(statistics_of_scope("peak of the end").peak_bytes, 5U * 64);
}

TEST(StatisticsScope, ScopeThatOnlyFreesHasNoPeak) {
    FakeCounters counters;
    counters.allocate(0, 5);
    {
        const StatisticsScope scope("frees");
        counters.free(0, 5);
    }
    EXPECT_EQ(statistics_of_scope("frees").peak_bytes, 0U);
    EXPECT_EQ(statistics_of_scope("frees").growth_bytes(), -5 * 64);
}

TEST(StatisticsScope, OuterPeakIncludesInnerPeak) {
    FakeCounters counters;
    {
        const StatisticsScope outer("outer peak");
        counters.allocate_large(1 << 20);
        {
            const StatisticsScope middle("middle peak");
            const StatisticsScope inner("inner peak");
            counters.allocate_large(2 << 20);
            counters.free_large(2 << 20);
        }
        counters.free_large(1 << 20);
    }
    EXPECT_EQ(statistics_of_scope("outer peak").peak_bytes, 3U << 20);
    EXPECT_EQ(statistics_of_scope("middle peak").peak_bytes, 2U << 20);
    EXPECT_EQ(statistics_of_scope("inner peak").peak_bytes, 2U << 20);
}

TEST(StatisticsScope, PeakOfNameIsMaximumOfScopes) {
    FakeCounters counters;
    for (const std::uint64_t blocks : {1U, 3U, 2U}) {
        const StatisticsScope scope("highest");
        counters.allocate(0, blocks);
        look_at_scopes();
        counters.free(0, blocks);
    }
    EXPECT_EQ(statistics_of_scope("highest").peak_bytes, 3U * 64);
    EXPECT_EQ(statistics_of_scope("highest").calls, 3U);
}

TEST(StatisticsScope, PoolsMayBeCreatedAndDestroyedInside) {
    {
        const StatisticsScope scope("come and go");
        FakeCounters stays;
        stays.allocate(0);
        {
            FakeCounters goes;
            goes.allocate(0, 2);
        }
        std::optional<FakeCounters> dies_elsewhere(std::in_place);
        dies_elsewhere->allocate_large(1 << 20);
        std::thread([&] { dies_elsewhere.reset(); }).join();
        stays.allocate(0);
    }
    const ScopeStatistics statistics = statistics_of_scope("come and go");
    EXPECT_EQ(statistics.allocations, 5U);
    EXPECT_EQ(statistics.allocated_bytes, 4U * 64 + (1 << 20));
}

TEST(StatisticsScope, IncludesSharedCounters) {
    {
        const StatisticsScope scope("shared");
        statistics::count_shared_allocation(2, 256, 200);
        statistics::count_shared_large_allocation(90'000, 100'000);
        statistics::count_shared_large_deallocation(100'000);
        statistics::count_shared_deallocation(2, 256);
    }
    const ScopeStatistics statistics = statistics_of_scope("shared");
    EXPECT_EQ(statistics.allocations, 2U);
    EXPECT_EQ(statistics.deallocations, 2U);
    EXPECT_EQ(statistics.requested_bytes, 90'200U);
    EXPECT_EQ(statistics.peak_bytes, 100'256U);
    EXPECT_EQ(statistics.growth_bytes(), 0);
}

TEST(StatisticsScope, ExcludesOtherThreads) {
    FakeCounters counters;
    {
        const StatisticsScope scope("one thread");
        std::thread([] {
            FakeCounters other;
            other.allocate(0, 9);
        }).join();
        counters.allocate(0);
    }
    EXPECT_EQ(statistics_of_scope("one thread").allocations, 1U);
}

TEST(StatisticsScope, SumsScopesOfSameNameOverThreads) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([] {
            FakeCounters counters;
            for (int j = 0; j < 1000; ++j) {
                const StatisticsScope outer("all threads");
                counters.allocate(0);
                const StatisticsScope inner("all threads, inside");
                counters.allocate(1);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(statistics_of_scope("all threads").calls, 4000U);
    EXPECT_EQ(statistics_of_scope("all threads").allocations, 8000U);
    EXPECT_EQ(statistics_of_scope("all threads, inside").allocated_bytes, 4000U * 128);
    EXPECT_EQ(statistics_of_scope("all threads").open, 0U);
}

TEST(StatisticsScope, EndBeforeInnerScopeIsReportedAndCounted) {
    FakeCounters counters;
    const std::uint64_t before = failed_orders();
    std::optional<StatisticsScope> outer(std::in_place, "ends too early");
    {
        const StatisticsScope inner("ends late");
        counters.allocate_large(1 << 20);
        counters.free_large(1 << 20);
        counters.allocate(0);
        outer.reset();
        counters.allocate(0);
    }
    const ScopeStatistics early = statistics_of_scope("ends too early");
    EXPECT_EQ(early.out_of_order, 1U);
    EXPECT_EQ(early.calls, 1U);
    EXPECT_EQ(early.allocations, 2U) << "until its own end";
    EXPECT_EQ(early.peak_bytes, 1U << 20) << "measured in the inner scope";
    EXPECT_EQ(statistics_of_scope("ends late").out_of_order, 0U);
    EXPECT_EQ(statistics_of_scope("ends late").allocations, 3U);
    EXPECT_EQ(failed_orders(), before + 1);
    EXPECT_EQ(entries_of(EntryKind::check, "ends too early").size(), 1U);
}

TEST(StatisticsScope, EndOnAnotherThreadIsReportedAndCountsNothing) {
    FakeCounters counters;
    std::optional<StatisticsScope> moved(std::in_place, "other thread");
    counters.allocate(0);
    std::thread([&] {
        FakeCounters other;
        const StatisticsScope own("own scope of other thread");
        other.allocate(0);
        moved.reset();
    }).join();
    EXPECT_EQ(statistics_of_scope("other thread").out_of_order, 1U);
    EXPECT_EQ(statistics_of_scope("other thread").allocations, 0U);
    EXPECT_EQ(statistics_of_scope("other thread").open, 0U);
    EXPECT_EQ(statistics_of_scope("own scope of other thread").allocations, 1U);
    EXPECT_EQ(statistics_of_scope("own scope of other thread").out_of_order, 0U);
    EXPECT_EQ(entries_of(EntryKind::check, "other thread").size(), 1U);
    EXPECT_FALSE(statistics::has_open_scope());
}

TEST(StatisticsScope, OuterScopeContinuesIfInnerEndsOnAnotherThread) {
    FakeCounters counters;
    {
        const StatisticsScope outer("goes on");
        std::optional<StatisticsScope> inner(std::in_place, "ended elsewhere");
        counters.allocate_large(1 << 20);
        counters.free_large(1 << 20);
        std::thread([&] { inner.reset(); }).join();
        counters.allocate(0);
    }
    EXPECT_EQ(statistics_of_scope("goes on").allocations, 2U);
    EXPECT_EQ(statistics_of_scope("goes on").peak_bytes, 1U << 20);
    EXPECT_EQ(statistics_of_scope("goes on").out_of_order, 0U);
}

TEST(StatisticsScope, MayEndAfterItsThread) {
    std::optional<StatisticsScope> first, second;
    std::thread([&] {
        FakeCounters counters;
        first.emplace("thread gone");
        second.emplace("thread gone");
        counters.allocate(0);
    }).join();
    EXPECT_EQ(statistics_of_scope("thread gone").open, 2U);
    EXPECT_FALSE(first->growth().grew);
    // The next thread reuses the record of the ended one.
    std::thread([&] {
        FakeCounters counters;
        const StatisticsScope own("thread that came");
        first.reset();
        counters.allocate(0);
    }).join();
    second.reset();
    EXPECT_EQ(statistics_of_scope("thread gone").open, 0U);
    EXPECT_EQ(statistics_of_scope("thread gone").calls, 2U);
    EXPECT_EQ(statistics_of_scope("thread gone").out_of_order, 2U);
    EXPECT_EQ(statistics_of_scope("thread gone").allocations, 0U);
    EXPECT_EQ(statistics_of_scope("thread that came").allocations, 1U);
}

TEST(StatisticsScope, ThreadMayEndWhileAnotherEndsItsScopes) {
    for (int round = 0; round < 200; ++round) {
        std::optional<StatisticsScope> moved;
        std::atomic<bool> begun = false;
        std::thread thread([&] {
            FakeCounters counters;
            moved.emplace("race");
            const StatisticsScope inner("race, inside");
            counters.allocate(0);
            begun = true;
            look_at_scopes();
        });
        testing::wait_until("the other thread is inside its scopes", begun);
        (void)moved->growth();
        moved.reset();
        thread.join();
    }
    EXPECT_EQ(statistics_of_scope("race").calls, 200U);
    EXPECT_EQ(statistics_of_scope("race").open, 0U);
    EXPECT_EQ(statistics_of_scope("race, inside").calls, 200U);
}

TEST(StatisticsScope, ForkedChildContinuesScope) {
    FakeCounters counters;
    counters.allocate(0);
    std::optional<StatisticsScope> scope(std::in_place, "fork");
    counters.allocate(0);
    EXPECT_TRUE(holds_in_child([&] {
        counters.allocate(0, 2);
        scope.reset();
        const ScopeStatistics statistics = statistics_of_scope("fork");
        return statistics.allocations == 3 && statistics.calls == 1 && statistics.open == 0;
    }));
    EXPECT_EQ(statistics_of_scope("fork").open, 1U);
    scope.reset();
    EXPECT_EQ(statistics_of_scope("fork").allocations, 1U);
    EXPECT_EQ(statistics_of_scope("fork").calls, 1U);
}

TEST(StatisticsScope, ScopesOfOtherThreadsAreClosedInForkedChild) {
    std::atomic<bool> begun = false, done = false;
    std::optional<StatisticsScope> of_other;
    std::thread other([&] {
        of_other.emplace("of other thread");
        const StatisticsScope inner("of other thread");
        begun = true;
        testing::wait_until("the child has ended", done);
    });
    testing::wait_until("the other thread is inside its scopes", begun);
    EXPECT_TRUE(holds_in_child([&] {
        if (statistics_of_scope("of other thread").open != 0) return false;
        of_other.reset();
        const ScopeStatistics statistics = statistics_of_scope("of other thread");
        return statistics.open == 0 && statistics.calls == 1 && statistics.out_of_order == 1;
    }));
    EXPECT_EQ(statistics_of_scope("of other thread").open, 2U);
    done = true;
    other.join();
}

TEST(StatisticsScope, NamesAreTruncatedTo47Bytes) {
    const std::string name(60, 'n');
    { const StatisticsScope scope(name); }
    { const StatisticsScope scope(name); }
    { const StatisticsScope scope(name.substr(0, 47)); }
    EXPECT_EQ(statistics_of_scope(name.substr(0, 47)).calls, 3U);
}

TEST(StatisticsScope, NameIsComparedByText) {
    std::string name = "first text";
    { const StatisticsScope scope(name); }
    name = "other text";
    { const StatisticsScope scope(name); }
    EXPECT_EQ(statistics_of_scope("first text").calls, 1U);
    EXPECT_EQ(statistics_of_scope("other text").calls, 1U);
}

TEST(StatisticsScope, ExcessNamesAreSummedAsOther) {
    EXPECT_TRUE(holds_in_child([] {
        FakeCounters counters;
        for (int i = 0; i < 100; ++i) {
            const StatisticsScope scope("name " + std::to_string(i));
            counters.allocate(0);
        }
        const auto* const others =
            statistics::segment().find_or_add<statistics::ScopeRecord>("one more");
        char name[statistics::Name::bytes];
        statistics::load_name(others->name, name);
        return std::string(name) == "other" && others->calls >= 36 && others->open == 0 &&
               others->allocations == others->calls && statistics_of_scope("name 0").calls == 1;
    }));
}

// A sanitizer needs memory of its own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST(StatisticsScope, CountsNothingWithoutMemoryForItself) {
    EXPECT_TRUE(holds_in_child([] {
        FakeCounters counters;
        { const StatisticsScope first("no memory"); }  // creates the segment
        const std::uint64_t calls = statistics_of_scope("no memory").calls;
        const rlimit nothing = {0, 0};
        if (setrlimit(RLIMIT_AS, &nothing) != 0) return false;
        static std::optional<StatisticsScope> scopes[1000];
        for (auto& scope : scopes) scope.emplace("no memory");
        counters.allocate(0);
        const bool last_sees = scopes[999]->growth().grew, first_sees = scopes[0]->growth().grew;
        for (int i = 999; i >= 0; --i) scopes[i].reset();
        const std::uint64_t counted = statistics_of_scope("no memory").calls - calls;
        return first_sees && !last_sees && counted > 0 && counted < 1000;
    }));
}
#endif

TEST(StatisticsScope, HigherPeakIsWrittenToTimeline) {
    FakeCounters counters;
    const auto grow_by = [&](std::uint64_t blocks) {
        const StatisticsScope scope("reported");
        counters.allocate(0, blocks);
        look_at_scopes();
        counters.free(0, blocks);
    };
    for (const std::uint64_t blocks : {100U, 50U, 200U}) grow_by(blocks);
    const std::vector<TimelineEntry> entries = entries_of(EntryKind::scope, "reported");
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].bytes, 6'400U);
    EXPECT_EQ(entries[1].bytes, 12'800U);
}

TEST(StatisticsScope, SlowlyRisingPeakDoesNotFillTimeline) {
    FakeCounters counters;
    for (std::uint64_t blocks = 1000; blocks < 2000; ++blocks) {
        const StatisticsScope scope("rises slowly");
        counters.allocate(0, blocks);
        look_at_scopes();
        counters.free(0, blocks);
    }
    EXPECT_EQ(statistics_of_scope("rises slowly").peak_bytes, 1999U * 64);
    const std::vector<TimelineEntry> entries = entries_of(EntryKind::scope, "rises slowly");
    EXPECT_GE(entries.size(), 8U);
    EXPECT_LE(entries.size(), 12U);
    EXPECT_GE(entries.back().bytes, 1999U * 64 / 17 * 16);
}

TEST(StatisticsScope, GrowthListsBuckets) {
    FakeCounters counters;
    const StatisticsScope scope("growth");
    EXPECT_FALSE(scope.growth().grew);
    counters.allocate(0, 3);
    counters.free(2);
    counters.allocate_large(1 << 20);
    const ScopeGrowth growth = scope.growth();
    EXPECT_TRUE(growth.grew);
    EXPECT_FALSE(growth);
    EXPECT_EQ(growth.bytes, 3 * 64 - 256 + (1 << 20));
    EXPECT_EQ(growth.blocks[0], 3);
    EXPECT_EQ(growth.blocks[2], -1);
    EXPECT_EQ(growth.large_blocks, 1);
    EXPECT_EQ(growth.large_bytes, 1 << 20);
}

TEST(StatisticsScope, GrowthInOneBucketIsReportedDespiteFreesInAnother) {
    FakeCounters counters;
    counters.allocate(5, 10);
    EXPECT_TRUE(measure_growth([&] { counters.free(5); }));
    const ScopeGrowth growth = measure_growth([&] {
        counters.allocate(0);
        counters.free(5);
    });
    EXPECT_TRUE(growth.grew);
    EXPECT_LT(growth.bytes, 0);
}

TEST(StatisticsScope, GrowthMayBeReadOnAnotherThread) {
    FakeCounters counters;
    const StatisticsScope scope("read elsewhere");
    counters.allocate(0);
    std::thread([&] { EXPECT_EQ(scope.growth().blocks[0], 1); }).join();
}

TEST(MeasureGrowth, BalancedCallsDoNotGrow) {
    FakeCounters counters;
    const ScopeGrowth growth = measure_growth([&] {
        counters.allocate(0, 100);
        counters.free(0, 100);
    });
    EXPECT_TRUE(growth) << to_text(growth);
}

}  // namespace
}  // namespace tensorpool
