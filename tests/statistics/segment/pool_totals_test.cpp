#include "statistics/segment/pool_totals.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace tensorpool::statistics {
namespace {

TEST(PoolTotals, HoldAndLetGoTrackPeak) {
    PoolTotals totals{};
    totals.hold(100);
    totals.hold(50);
    totals.let_go(120);
    totals.hold(40);
    EXPECT_EQ(totals.held_bytes, 70U);
    EXPECT_EQ(totals.peak_held_bytes, 150U);
}

TEST(PoolTotals, ConcurrentPeakIsWithinBounds) {
    constexpr unsigned threads = 4;
    PoolTotals totals{};
    std::vector<std::thread> workers;
    for (unsigned thread = 0; thread < threads; ++thread) {
        workers.emplace_back([&totals] {
            for (unsigned round = 0; round < 20'000; ++round) {
                totals.hold(64);
                totals.let_go(64);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(totals.held_bytes, 0U);
    EXPECT_GE(totals.peak_held_bytes, 64U);
    EXPECT_LE(totals.peak_held_bytes, 64U * threads);
}

// Counters that all threads write are on other cache lines than those they only read, and the
// layout suits a shared segment.
TEST(PoolTotals, SharedCountersHaveTheirOwnCacheLine) {
    PoolTotals totals{};
    const auto at = [&](const Counter& counter) {
        return reinterpret_cast<const char*>(&counter) - reinterpret_cast<const char*>(&totals);
    };
    EXPECT_EQ(at(totals.held_bytes) % 64, 0);
    const Counter& last_before = totals.bucket_capacity_bytes[detail::bucket_count - 1];
    EXPECT_GT(at(totals.held_bytes), at(last_before));
    EXPECT_EQ(sizeof(PoolTotals) % 64, 0U);
    static_assert(std::is_standard_layout_v<PoolTotals>);
}

}  // namespace
}  // namespace tensorpool::statistics
