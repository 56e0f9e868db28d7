#include "pages/heap/heap_capacity.hpp"

#include <gtest/gtest.h>

#include "pages/heap/test_heap.hpp"

namespace tensorpool::pages {
namespace {

using testing::FakeSystem;

/// What a pool keeps with a limit of 1,000 bytes and periods of 10 ms, while 64 GiB are available.
class KeptMemoryTest : public ::testing::Test {
protected:
    KeptMemoryTest() { FakeSystem::set(std::size_t{64} << 30, 0); }

    static HeapOptions limited() {
        HeapOptions options = testing::plain_options();
        options.retain = {.bytes = 1000, .milliseconds = 10};
        return options;
    }

    statistics::PoolTotals totals{};
    limits::CommitBudget process{FakeSystem::source()};
    KeptMemory kept{process, limited(), totals};
};

TEST_F(KeptMemoryTest, LimitCountsWhatIsFreeCachedAndElsewhere) {
    kept.count_free(300, 0);
    totals.large_cached_bytes = 200;
    kept.note_elsewhere(400);
    EXPECT_EQ(kept.free_bytes(), 300U);
    EXPECT_EQ(kept.excess(), 0U);
    EXPECT_TRUE(kept.may_keep(100));
    EXPECT_FALSE(kept.may_keep(101));
    kept.count_free(250, 0);
    EXPECT_EQ(kept.excess(), 150U);
    kept.note_elsewhere(-400);
    EXPECT_EQ(kept.excess(), 0U);
}

TEST_F(KeptMemoryTest, NothingIsTooMuchWithoutALimit) {
    KeptMemory unlimited(process, testing::plain_options(), totals);
    EXPECT_TRUE(unlimited.is_unlimited());
    unlimited.note_elsewhere(-1);
    EXPECT_TRUE(unlimited.may_keep(SIZE_MAX));
    EXPECT_EQ(unlimited.excess(), 0U);
}

TEST_F(KeptMemoryTest, OfferedMemoryIsUsedLast) {
    kept.count_free(1000, 100);
    EXPECT_EQ(kept.unoffered_bytes(), 900U) << "untouched memory takes none";
    kept.note_offered(5000);
    EXPECT_EQ(kept.unoffered_bytes(), 0U);
    kept.count_free(std::size_t{0} - 300, 0);
    kept.count_free(500, 0);
    EXPECT_EQ(kept.unoffered_bytes(), 400U);
}

TEST_F(KeptMemoryTest, PeriodReportsTheLeastThatWasFree) {
    kept.count_free(700, 0);
    FakeSystem::pass_ms(10);
    ASSERT_TRUE(kept.has_period_ended(FakeSystem::now_ns));
    EXPECT_EQ(kept.begin_period(FakeSystem::now_ns), 0U) << "nothing was free at its begin";
    const std::uint32_t period = kept.period();
    EXPECT_FALSE(kept.has_period_ended(FakeSystem::now_ns));
    kept.count_free(std::size_t{0} - 500, 0);
    kept.count_free(500, 0);
    FakeSystem::pass_ms(10);
    EXPECT_EQ(kept.begin_period(FakeSystem::now_ns), 200U);
    EXPECT_EQ(kept.period(), period + 1);
}

TEST_F(KeptMemoryTest, PeriodsAreATenthWhileMemoryIsShort) {
    EXPECT_EQ(kept.period_ns(), 10'000'000U);
    FakeSystem::set(std::size_t{1} << 20, std::size_t{1} << 30);
    EXPECT_EQ(kept.period_ns(), 1'000'000U);
}

TEST_F(KeptMemoryTest, SumIsTheSameWhenSeveralShardsCount) {
    kept.count_free(300, 0);
    kept.divide();
    kept.count_free(300, 100);
    EXPECT_EQ(kept.free_bytes(), 600U);
    EXPECT_EQ(totals.untouched_bytes, 100U);
}

}  // namespace
}  // namespace tensorpool::pages
