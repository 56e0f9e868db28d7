#include "statistics/records/record_values.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <thread>

#include "plan/planned_table.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::statistics {
namespace {

using State = PlannedArenaStatistics::State;

TEST(StatisticsOfPlannedArena, FreesOfAnyThreadReduceBytesInUse) {
    PlannedRecord planned = {};
    PlannedTotals& totals = planned.totals;
    totals.capacity_bytes = 4096;
    totals.count_served(1000);
    totals.count_served(500);
    totals.count_served(100);
    totals.count_from_pool(64);
    totals.count_from_pool(128);
    EXPECT_EQ(statistics_of(planned).in_use_bytes, 1600U);
    EXPECT_EQ(statistics_of(planned).pool_in_use_bytes, 192U);
    totals.count_freed(500);
    totals.count_pool_freed(64);
    std::thread([&] {
        totals.count_freed_elsewhere(1000);
        totals.count_pool_freed_elsewhere(128);
    }).join();
    EXPECT_EQ(statistics_of(planned).in_use_bytes, 100U);
    EXPECT_EQ(statistics_of(planned).pool_in_use_bytes, 0U);
    EXPECT_EQ(statistics_of(planned).served, 3U);
    EXPECT_EQ(statistics_of(planned).from_pool, 2U);
}

TEST(StatisticsOfPlannedArena, MissesAreCountedByReasonAndAsPoolRequests) {
    PlannedRecord planned = {};
    PlannedTotals& totals = planned.totals;
    totals.count_from_pool(64);  // while it learns
    totals.count_missed(totals.too_large, 64);
    totals.count_missed(totals.unknown, 64);
    totals.count_missed(totals.unknown, 64);
    totals.count_missed(totals.out_of_order, 64);
    totals.count_missed(totals.still_in_use, 64);
    const PlannedArenaStatistics statistics = statistics_of(planned);
    EXPECT_EQ(statistics.from_pool, 6U);
    EXPECT_EQ(statistics.too_large, 1U);
    EXPECT_EQ(statistics.unknown, 2U);
    EXPECT_EQ(statistics.out_of_order, 1U);
    EXPECT_EQ(statistics.still_in_use, 1U);
    EXPECT_EQ(statistics.pool_in_use_bytes, 6U * 64);
}

TEST(StatisticsOfPlannedArena, OverwrittenRecordKeepsPartsWithinWhole) {
    std::mt19937_64 random(3);
    for (int round = 0; round < 2000; ++round) {
        PlannedRecord planned = {};
        for (std::size_t i = 0; i < words_of<PlannedRecord>; ++i) {
            as_words(planned)[i] = random() >> random() % 64;
        }
        const PlannedArenaStatistics statistics = statistics_of(planned);
        EXPECT_LE(statistics.state, State::serving);
        EXPECT_LE(statistics.in_use_bytes, statistics.capacity_bytes);
        std::uint64_t left = statistics.from_pool;
        for (const std::uint64_t reason : {statistics.too_large, statistics.out_of_order,
                                           statistics.unknown, statistics.still_in_use}) {
            ASSERT_LE(reason, left);
            left -= reason;
        }
    }
}

// A reader sees a reason only together with its request, and a free only together with its
// allocation.
TEST(StatisticsOfPlannedArena, AreConsistentDuringConcurrentCounts) {
    PlannedRecord planned = {};
    planned.totals.capacity_bytes = ~std::uint64_t{0};
    std::atomic<bool> done = false;
    std::thread owner([&] {
        for (int i = 0; i < 50'000; ++i) {
            planned.totals.count_missed(planned.totals.too_large, 64);
            planned.totals.count_pool_freed(64);
            planned.totals.count_served(128);
            planned.totals.count_freed(128);
        }
        done = true;
    });
    while (!done) {
        const std::uint64_t reasons = planned.totals.too_large.load(std::memory_order_acquire);
        EXPECT_LE(reasons, planned.totals.from_pool.load(std::memory_order_relaxed));
        EXPECT_LE(statistics_of(planned).in_use_bytes, 50'000U * 128) << "not negative";
    }
    owner.join();
    EXPECT_EQ(statistics_of(planned).in_use_bytes, 0U);
    EXPECT_EQ(statistics_of(planned).too_large, 50'000U);
}

}  // namespace
}  // namespace tensorpool::statistics
