#include "common/totals.hpp"

#include <gtest/gtest.h>

#include "tools/tensorpool/made_up_data.hpp"

namespace tensorpool::command {
namespace {

constexpr std::uint64_t mib = 1 << 20;

TEST(Totals, SumPoolsArenasAndScratches) {
    const Totals totals = add_up(made_up_snapshot());
    EXPECT_EQ(totals.in_use_bytes, 116 * mib);
    EXPECT_EQ(totals.capacity_bytes, 230 * mib);
    EXPECT_EQ(totals.allocations, 2000u);
}

TEST(Totals, IncludePlannedArenas) {
    ProcessSnapshot snapshot = made_up_snapshot();
    snapshot.planned[0].in_use_bytes = 10 * mib;
    snapshot.planned[0].capacity_bytes = 102 * mib;
    const Totals totals = add_up(snapshot);
    EXPECT_EQ(totals.in_use_bytes, 126 * mib);
    EXPECT_EQ(totals.capacity_bytes, 332 * mib);
    EXPECT_EQ(totals.peak_bytes, 221 * mib);
}

TEST(Totals, SumDeviceMemorySeparately) {
    const Totals totals = add_up(made_up_snapshot());
    EXPECT_EQ(totals.device_in_use_bytes, 300 * mib);
    EXPECT_EQ(totals.device_capacity_bytes, 640 * mib);
}

TEST(Totals, ExcludeMeasuringArenas) {
    ProcessSnapshot snapshot = made_up_snapshot();
    snapshot.arenas[0].kind = ArenaStatistics::Kind::measuring;
    EXPECT_EQ(add_up(snapshot).in_use_bytes, 113 * mib);
}

TEST(Totals, HaveNoLimitIfOneObjectHasNone) {
    ProcessSnapshot snapshot = made_up_snapshot();
    EXPECT_EQ(add_up(snapshot).limit_bytes, 0u);
    snapshot.arenas.clear();
    snapshot.scratches.clear();
    snapshot.pools[0].limit_bytes = 200 * mib;
    EXPECT_EQ(add_up(snapshot).limit_bytes, 264 * mib);
}

TEST(Totals, SumRatesAndWeightHits) {
    ProcessRates rates;
    rates.minor_faults = 3;
    rates.pools.resize(2);
    rates.pools[0].allocations = 300;
    rates.pools[0].hit_ratio = 1;
    rates.pools[1].allocations = 100;
    rates.pools[1].hit_ratio = 0;
    EXPECT_EQ(add_up(rates).allocations, 400);
    EXPECT_EQ(add_up(rates).hit_ratio, 0.75);
    EXPECT_EQ(add_up(rates).faults, 3);
    EXPECT_EQ(add_up(ProcessRates{}).hit_ratio, 1);
}

TEST(Totals, KeepingOnePoolKeepsItsThreads) {
    ProcessSnapshot snapshot = made_up_snapshot();
    snapshot.threads.push_back({1, 2, "other", 0, 0, 0});
    keep_pool(snapshot, "weights");
    EXPECT_EQ(snapshot.pools.size(), 1u);
    EXPECT_EQ(snapshot.threads.size(), 2u);
    EXPECT_TRUE(snapshot.arenas.empty());
}

}  // namespace
}  // namespace tensorpool::command
