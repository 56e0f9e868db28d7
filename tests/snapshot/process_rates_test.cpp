#include <gtest/gtest.h>

#include <clocale>
#include <string>

#include <tensorpool/process_snapshot.hpp>

namespace tensorpool {
namespace {

/// A process with one pool, `seconds` after it started.
ProcessSnapshot snapshot_at(std::uint64_t seconds, std::uint64_t allocations) {
    ProcessSnapshot snapshot;
    snapshot.time_ns = seconds * 1'000'000'000;
    PoolStatistics pool;
    pool.id = 3;
    pool.allocations = pool.buckets[1].allocations = allocations;
    pool.requested_bytes = pool.buckets[1].requested_bytes = allocations * 96;
    pool.allocated_bytes = pool.buckets[1].allocated_bytes = allocations * 128;
    pool.cache_hits = pool.buckets[1].cache_hits = allocations * 3 / 4;
    pool.cache_misses = pool.buckets[1].cache_misses = allocations / 4;
    pool.buckets[1].depot_hits = allocations / 4;
    snapshot.pools = {pool};
    return snapshot;
}

TEST(Difference, GivesRatesPerSecond) {
    ProcessSnapshot older = snapshot_at(10, 1000);
    ProcessSnapshot newer = snapshot_at(12, 5000);
    newer.minor_faults = 50;
    const ProcessRates rates = difference(older, newer);
    EXPECT_DOUBLE_EQ(rates.seconds, 2);
    EXPECT_DOUBLE_EQ(rates.minor_faults, 25);
    ASSERT_EQ(rates.pools.size(), 1U);
    const PoolRates& pool = rates.pools[0];
    EXPECT_EQ(pool.pool, 3U);
    EXPECT_DOUBLE_EQ(pool.seconds, 2);
    EXPECT_DOUBLE_EQ(pool.allocations, 2000);
    EXPECT_DOUBLE_EQ(pool.from_magazines, 1500);
    EXPECT_DOUBLE_EQ(pool.from_depots, 500);
    EXPECT_DOUBLE_EQ(pool.from_spans + pool.from_extents + pool.from_system, 0);
    EXPECT_DOUBLE_EQ(pool.hit_ratio, 0.75);
    EXPECT_DOUBLE_EQ(pool.rounding_ratio, 0.25);
}

TEST(Difference, IdlePoolHasFullHitRatioAndNoRounding) {
    const ProcessRates rates = difference(snapshot_at(1, 100), snapshot_at(2, 100));
    EXPECT_DOUBLE_EQ(rates.pools.at(0).allocations, 0);
    EXPECT_DOUBLE_EQ(rates.pools.at(0).hit_ratio, 1);
    EXPECT_DOUBLE_EQ(rates.pools.at(0).rounding_ratio, 0);
}

TEST(Difference, DecreasingTotalsGiveZeroRates) {
    const ProcessRates rates = difference(snapshot_at(1, 1000), snapshot_at(2, 100));
    EXPECT_DOUBLE_EQ(rates.pools.at(0).allocations, 0);
    EXPECT_DOUBLE_EQ(rates.pools.at(0).from_magazines, 0);
}

TEST(Difference, EqualTimesGiveZeroRates) {
    const ProcessRates rates = difference(snapshot_at(1, 0), snapshot_at(1, 100));
    EXPECT_DOUBLE_EQ(rates.seconds, 0);
    EXPECT_DOUBLE_EQ(rates.pools.at(0).allocations, 0);
}

TEST(Difference, ContainsOnlyPoolsInBothSnapshots) {
    ProcessSnapshot older = snapshot_at(1, 0);
    ProcessSnapshot newer = snapshot_at(2, 0);
    newer.pools.emplace_back().id = 9;
    older.pools.emplace_back().id = 4;
    const ProcessRates rates = difference(older, newer);
    ASSERT_EQ(rates.pools.size(), 1U);
    EXPECT_EQ(rates.pools[0].pool, 3U);
}

TEST(Difference, ContainsDeviceAllocators) {
    ProcessSnapshot older = snapshot_at(10, 0);
    ProcessSnapshot newer = snapshot_at(12, 0);
    older.devices = {DeviceStatistics{.id = 8}};
    newer.devices = {DeviceStatistics{.id = 9}, DeviceStatistics{.id = 8,
                                                                 .allocations = 100,
                                                                 .parked_hits = 60,
                                                                 .free_hits = 30,
                                                                 .growths = 4,
                                                                 .synchronizations = 2}};
    const ProcessRates rates = difference(older, newer);
    ASSERT_EQ(rates.devices.size(), 1U);
    EXPECT_EQ(rates.devices[0].id, 8U);
    EXPECT_DOUBLE_EQ(rates.devices[0].values.at("allocations"), 50);
    EXPECT_DOUBLE_EQ(rates.devices[0].values.at("growths"), 2);
    EXPECT_DOUBLE_EQ(rates.devices[0].values.at("synchronizations"), 1);
    EXPECT_DOUBLE_EQ(rates.devices[0].values.at("hit_ratio"), 0.9);
    EXPECT_NE(
        to_json(rates).find(
            "\"devices\":[{\"device\":8,\"seconds\":2,\"allocated_bytes\":0,\"allocations\":50,"),
        std::string::npos);
    EXPECT_DOUBLE_EQ(difference(newer, newer).devices[1].values.at("hit_ratio"), 1);
}

TEST(Difference, ContainsPlannedArenas) {
    ProcessSnapshot older = snapshot_at(10, 0);
    ProcessSnapshot newer = snapshot_at(12, 0);
    older.planned = {PlannedArenaStatistics{.id = 8, .iterations = 1, .from_pool = 100}};
    newer.planned = {
        PlannedArenaStatistics{.id = 9},
        PlannedArenaStatistics{.id = 8, .iterations = 5, .served = 90, .from_pool = 110}};
    const ProcessRates rates = difference(older, newer);
    ASSERT_EQ(rates.planned.size(), 1U);
    EXPECT_EQ(rates.planned[0].id, 8U);
    EXPECT_DOUBLE_EQ(rates.planned[0].values.at("iterations"), 2);
    EXPECT_DOUBLE_EQ(rates.planned[0].values.at("served"), 45);
    EXPECT_DOUBLE_EQ(rates.planned[0].values.at("from_pool"), 5);
    EXPECT_DOUBLE_EQ(rates.planned[0].values.at("hit_ratio"), 0.9);
    EXPECT_NE(to_json(rates).find(
                  "\"planned\":[{\"planned\":8,\"seconds\":2,\"from_pool\":5,\"hit_ratio\":0.9,"),
              std::string::npos);
    EXPECT_DOUBLE_EQ(difference(newer, newer).planned[1].values.at("hit_ratio"), 1);
}

TEST(RatesToJson, ContainsFieldsByName) {
    const std::string json = to_json(difference(snapshot_at(10, 1000), snapshot_at(14, 1001)));
    EXPECT_EQ(json,
              "{\"seconds\":4,\"minor_faults\":0,\"pools\":[{\"pool\":3,\"seconds\":4,"
              "\"allocations\":0.25,\"deallocations\":0,\"requested_bytes\":24,"
              "\"allocated_bytes\":32,\"from_magazines\":0,\"from_depots\":0,\"from_spans\":0,"
              "\"from_extents\":0,\"from_system\":0,\"failures\":0,\"hit_ratio\":0,"
              "\"rounding_ratio\":0.25}],\"devices\":[],\"planned\":[]}");
}

TEST(RatesToJson, EmptyRatesGiveEmptyLists) {
    EXPECT_EQ(to_json(ProcessRates()),
              "{\"seconds\":0,\"minor_faults\":0,\"pools\":[],\"devices\":[],\"planned\":[]}");
}

}  // namespace
}  // namespace tensorpool
