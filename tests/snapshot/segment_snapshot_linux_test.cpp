#include "snapshot/segment_snapshot.hpp"

#include <gtest/gtest.h>

#include <string>

#include "arena/arena_table.hpp"
#include "device/device_table.hpp"
#include "limits/budget_table.hpp"
#include "plan/planned_table.hpp"
#include "rest/stash_table.hpp"
#include "statistics/fake_segment_linux.hpp"
#include "statistics/scopes/scope_table.hpp"

namespace tensorpool::statistics {
namespace {

using namespace read;
using namespace snapshots;

using testing::FakeSegment;
using testing::put;
using Sealed = FakeSegment::Sealed;
using Kind = ArenaStatistics::Kind;

class SegmentSnapshot : public ::testing::TestWithParam<Sealed> {
protected:
    FakeSegment segment{GetParam()};

    ProcessSnapshot snapshot() {
        SegmentView view(segment.open());
        EXPECT_FALSE(view.open());
        ProcessSnapshot snapshot;
        EXPECT_FALSE(read_segment(view, snapshot));
        return snapshot;
    }
};
INSTANTIATE_TEST_SUITE_P(Sealed, SegmentSnapshot, ::testing::Values(Sealed::yes));
INSTANTIATE_TEST_SUITE_P(Unsealed, SegmentSnapshot, ::testing::Values(Sealed::no));

TEST_P(SegmentSnapshot, EmptySegmentGivesEmptySnapshot) {
    const ProcessSnapshot statistics = snapshot();
    EXPECT_TRUE(statistics.consistent);
    EXPECT_EQ(statistics.process_name, "fake");
    EXPECT_EQ(statistics.library_version, "1.2.3");
    EXPECT_TRUE(statistics.pools.empty());
    EXPECT_TRUE(statistics.arenas.empty());
    EXPECT_TRUE(statistics.scratches.empty());
    EXPECT_TRUE(statistics.devices.empty());
    EXPECT_TRUE(statistics.planned.empty());
    EXPECT_TRUE(statistics.scopes.empty());
    EXPECT_TRUE(statistics.threads.empty());
}

TEST_P(SegmentSnapshot, PoolsAreInOrderOfCreation) {
    segment.add_pool("second", 9);
    segment.add_pool("gone", 0);
    segment.add_pool("first", 4);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.pools.size(), 2U);
    EXPECT_STREQ(statistics.pools[0].name, "first");
    EXPECT_STREQ(statistics.pools[1].name, "second");
}

TEST_P(SegmentSnapshot, SumsCountersOfEachPool) {
    for (const std::uint64_t id : {1, 2}) {
        put(segment.add_pool("pool", id).totals.peak_held_bytes, 1 << 20);
    }
    put(segment.add_counters(2, 100).counters.buckets[0].allocations, 10);
    put(segment.add_counters(1, 100).counters.buckets[0].allocations, 1);
    put(segment.add_counters(2, 101).counters.buckets[0].deallocations, 3);
    put(segment.pool(2).shared.buckets[0].allocations, 5);
    put(segment.pool(2).left_out.buckets[0].allocations, 7);
    put(segment.add_counters(0, 0).counters.buckets[0].allocations, 1000);  // belongs to no pool
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.pools.size(), 2U);
    EXPECT_EQ(statistics.pools[0].allocations, 1U);
    EXPECT_EQ(statistics.pools[1].allocations, 22U);
    EXPECT_EQ(statistics.pools[1].deallocations, 3U);
    EXPECT_EQ(statistics.pools[1].in_use_bytes, 19U * 64);
}

TEST_P(SegmentSnapshot, GroupsThreadsByPoolAndSumsEndedThreads) {
    segment.add_pool("a", 1);
    segment.add_pool("b", 2);
    put(segment.add_counters(2, 100).counters.buckets[0].taken, 8);
    put(segment.add_counters(1, 101).counters.large.allocations, 2);
    put(segment.add_counters(1, 0).counters.buckets[3].deallocations, 5);
    put(segment.add_counters(1, 0).counters.buckets[3].allocations, 6);
    put(segment.pool(1).shared.buckets[0].allocations, 1);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.threads.size(), 3U);
    EXPECT_EQ(statistics.threads[0].thread, 101U);
    EXPECT_EQ(statistics.threads[0].pool, 1U);
    EXPECT_EQ(statistics.threads[0].allocations, 2U);
    EXPECT_EQ(statistics.threads[1].thread, 0U);
    EXPECT_EQ(statistics.threads[1].allocations, 7U);
    EXPECT_EQ(statistics.threads[1].deallocations, 5U);
    EXPECT_EQ(statistics.threads[2].thread, 100U);
    EXPECT_EQ(statistics.threads[2].pool, 2U);
    EXPECT_EQ(statistics.threads[2].parked_bytes, 8U * 64);
}

TEST_P(SegmentSnapshot, SeparatesArenasAndScratches) {
    put(segment.add_arena("steps", 3, std::uint64_t(Kind::growing)).totals.capacity_bytes, 4096);
    put(segment.arena(1).totals.limit_bytes, 1 << 20);
    put(segment.arena(1).words.used, 100);
    put(segment.add_arena("buffer", 4, std::uint64_t(Kind::buffer)).totals.capacity_bytes, 500);
    put(segment.add_arena("scratch", 5, std::uint64_t(Kind::scratch)).totals.capacity_bytes, 8192);
    put(segment.arena(3).thread, 77);
    put(segment.add_pool("pool", 6).totals.capacity_bytes, 16384);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.arenas.size(), 2U);
    EXPECT_STREQ(statistics.arenas[0].name, "steps");
    EXPECT_EQ(statistics.arenas[0].used_bytes, 100U);
    ASSERT_EQ(statistics.scratches.size(), 1U);
    EXPECT_EQ(statistics.scratches[0].thread, 77U);
    EXPECT_EQ(statistics.committed_bytes, 4096U + 8192 + 16384) << "a buffer belongs to its owner";
}

TEST_P(SegmentSnapshot, PlannedArenasAreInOrderOfCreation) {
    put(segment.add_planned("second", 9).totals.served, 3000);
    put(segment.add_planned("first", 4).totals.served, 50);
    segment.add_planned("gone", 0);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.planned.size(), 2U);
    EXPECT_STREQ(statistics.planned[0].name, "first");
    EXPECT_EQ(statistics.planned[0].served, 50U);
    EXPECT_STREQ(statistics.planned[1].name, "second");
    EXPECT_EQ(statistics.planned[1].served, 3000U);
    put(segment.planned(1).totals.capacity_bytes, 1 << 20);
    EXPECT_EQ(snapshot().committed_bytes, std::uint64_t{1} << 20);
}

TEST_P(SegmentSnapshot, PlannedArenasWithoutRecordAreSummedAsOther) {
    put(segment.header().region<PlannedRecord>().left_out, 3);
    put(segment.planned(0).totals.served, 70);
    const ProcessSnapshot statistics = snapshot();
    EXPECT_EQ(statistics.left_out.at("planned"), 3U);
    ASSERT_EQ(statistics.planned.size(), 1U);
    EXPECT_STREQ(statistics.planned[0].name, "other");
    EXPECT_EQ(statistics.planned[0].id, 0U);
    EXPECT_EQ(statistics.planned[0].served, 70U);
}

TEST_P(SegmentSnapshot, SumsStreamsOfEachDeviceAllocator) {
    put(segment.add_device("second", 9).totals.capacity_bytes, 1 << 20);
    put(segment.add_device("first", 4).totals.capacity_bytes, 1 << 20);
    segment.add_device("gone", 0);
    put(segment.add_device_stream(9).counters.allocated_bytes, 3000);
    put(segment.add_device_stream(4).counters.allocated_bytes, 50);
    put(segment.add_device_stream(9).counters.allocated_bytes, 700);
    put(segment.device_stream(3).counters.deallocated_bytes, 100);
    put(segment.device(1).left_out.allocated_bytes, 10);
    put(segment.add_device_stream(0).counters.allocated_bytes, 9999);  // belongs to no allocator
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.devices.size(), 2U);
    EXPECT_STREQ(statistics.devices[0].name, "first");
    EXPECT_EQ(statistics.devices[0].in_use_bytes, 50U);
    EXPECT_STREQ(statistics.devices[1].name, "second");
    EXPECT_STREQ(statistics.devices[1].device, "cuda:0");
    EXPECT_EQ(statistics.devices[1].in_use_bytes, 3610U);
    EXPECT_EQ(statistics.committed_bytes, 0U) << "only host memory counts";
}

TEST_P(SegmentSnapshot, ListsStreamsThatHoldMemoryOrAreWaitedFor) {
    segment.add_device("first", 4);
    DeviceStreamRecord& holds = segment.add_device_stream(4);
    put(holds.stream, 3);
    put(holds.capture, 8);
    put(holds.held_bytes, 100);
    put(holds.free_bytes, 30);
    put(holds.counters.parked_bytes, 999);
    DeviceStreamRecord& slow = segment.add_device_stream(4);
    put(slow.waiting_bytes, 50);
    put(slow.waiting_since_ns, 1);
    segment.add_device_stream(4);  // holds nothing
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.device_streams.size(), 2U);
    const DeviceStreamStatistics& first = statistics.device_streams[0];
    EXPECT_EQ(first.device, 4U);
    EXPECT_EQ(first.stream, 3U);
    EXPECT_EQ(first.capture, 8U);
    EXPECT_EQ(first.held_bytes, 100U);
    EXPECT_EQ(first.used_bytes, 70U);
    EXPECT_EQ(first.parked_bytes, 70U) << "at most what is in use";
    EXPECT_EQ(first.waiting_ns, 0U);
    EXPECT_EQ(statistics.device_streams[1].waiting_bytes, 50U);
    EXPECT_GT(statistics.device_streams[1].waiting_ns, 0U);
}

TEST_P(SegmentSnapshot, ObjectsWithoutRecordAreSummedAsOtherAtEnd) {
    segment.add_pool("pool", 3);
    put(segment.pool(0).totals.capacity_bytes, 4096);
    put(segment.pool(0).totals.peak_held_bytes, 1 << 20);
    put(segment.pool(0).left_out.buckets[0].allocations, 2);
    put(segment.header().region<PoolRecord>().left_out, 5);
    put(segment.header().region<ArenaRecord>().left_out, 6);
    put(segment.header().region<CountersRecord>().left_out, 7);
    put(segment.header().region<ScopeRecord>().left_out, 8);
    put(segment.header().region<DeviceRecord>().left_out, 10);
    put(segment.header().region<DeviceStreamRecord>().left_out, 11);
    put(segment.device(0).totals.capacity_bytes, 4096);
    put(segment.device(0).left_out.allocated_bytes, 512);
    put(segment.scope(0).calls, 9);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.pools.size(), 2U);
    EXPECT_STREQ(statistics.pools[1].name, "other");
    EXPECT_EQ(statistics.pools[1].id, 0U);
    EXPECT_EQ(statistics.pools[1].in_use_bytes, 128U);
    ASSERT_EQ(statistics.arenas.size(), 1U);
    EXPECT_STREQ(statistics.arenas[0].name, "other");
    ASSERT_EQ(statistics.scopes.size(), 1U);
    EXPECT_STREQ(statistics.scopes[0].name, "other");
    EXPECT_EQ(statistics.left_out.at("pools"), 5U);
    EXPECT_EQ(statistics.left_out.at("arenas"), 6U);
    EXPECT_EQ(statistics.left_out.at("slots"), 7U);
    EXPECT_EQ(statistics.left_out.at("scopes"), 8U);
    EXPECT_EQ(statistics.left_out.at("devices"), 10U);
    EXPECT_EQ(statistics.left_out.at("device_streams"), 11U);
    ASSERT_EQ(statistics.devices.size(), 1U);
    EXPECT_STREQ(statistics.devices[0].name, "other");
    EXPECT_EQ(statistics.devices[0].id, 0U);
    EXPECT_EQ(statistics.devices[0].in_use_bytes, 512U);
}

TEST_P(SegmentSnapshot, ContainsScopesAndFailedChecks) {
    put(segment.header().region<ScopeRecord>().used, 2);
    put(segment.scope(1).id, 5);
    store_name(segment.scope(1).name, "forward");
    put(segment.scope(1).calls, 3);
    put(segment.scope(1).open, 1);
    put(segment.scope(1).allocated_bytes, 100);
    put(segment.scope(1).deallocated_bytes, 40);
    put(segment.scope(1).peak_bytes, 80);
    for (unsigned kind = 0; kind < 4; ++kind) put(segment.header().failed_checks[kind], 10 + kind);
    put(segment.header().entries, 21);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.scopes.size(), 1U);
    EXPECT_STREQ(statistics.scopes[0].name, "forward");
    EXPECT_EQ(statistics.scopes[0].calls, 3U);
    EXPECT_EQ(statistics.scopes[0].growth_bytes(), 60);
    EXPECT_EQ(statistics.failed_misuse, 10U);
    EXPECT_EQ(statistics.failed_leaks, 11U);
    EXPECT_EQ(statistics.failed_threads, 12U);
    EXPECT_EQ(statistics.failed_scope_orders, 13U);
    EXPECT_EQ(statistics.entries, 21U);
}

TEST_P(SegmentSnapshot, ContainsBudgetsInTheOrderInWhichTheyWereMade) {
    put(segment.header().region<BudgetRecord>().used, 1);
    put(segment.header().region<BudgetRecord>().left_out, 4);
    BudgetRecord& cache = segment.add_budget("cache", 9, 7);
    put(cache.totals.in_use_bytes, 300);
    put(cache.totals.hard_bytes, 1000);
    put(cache.totals.peak_bytes, 200);
    put(cache.totals.refusals, 3);
    segment.add_budget("ended", 0, 7);
    segment.add_budget("process", 7, 0);
    const ProcessSnapshot statistics = snapshot();
    EXPECT_EQ(statistics.left_out.at("budgets"), 4U);
    ASSERT_EQ(statistics.budgets.size(), 2U);
    EXPECT_STREQ(statistics.budgets[0].name, "process");
    EXPECT_STREQ(statistics.budgets[1].name, "cache");
    EXPECT_EQ(statistics.budgets[1].parent, 7U);
    EXPECT_EQ(statistics.budgets[1].in_use_bytes, 300U);
    EXPECT_EQ(statistics.budgets[1].hard_bytes, 1000U);
    EXPECT_EQ(statistics.budgets[1].refusals, 3U);
    EXPECT_EQ(statistics.budgets[1].peak_bytes, 300U) << "the peak was read before the rest";
}

TEST_P(SegmentSnapshot, ContainsWhatRestsInTheOrderInWhichItWasMade) {
    put(segment.header().region<StashRecord>().used, 1);
    put(segment.header().region<StashRecord>().left_out, 2);
    StashRecord& map = segment.add_stash("cache", 9, 0);
    put(map.kind, 1);
    put(map.totals.tensors, 5);
    put(map.totals.stashed_bytes, 4000);
    put(map.totals.compressed_bytes, 500);
    put(map.totals.spilled_bytes, 1500);
    put(map.totals.restore_ns, 77);
    segment.add_stash("ended", 0, 0);
    put(segment.add_stash("overwritten", 11, 0).kind, 3);
    segment.add_stash("weights", 7, 0);
    const ProcessSnapshot statistics = snapshot();
    EXPECT_EQ(statistics.left_out.at("stashes"), 2U);
    ASSERT_EQ(statistics.stashes.size(), 3U);
    EXPECT_STREQ(statistics.stashes[0].name, "weights");
    const StashStatistics& cache = statistics.stashes[1];
    EXPECT_STREQ(cache.name, "cache");
    EXPECT_EQ(cache.kind, StashStatistics::Kind::map);
    EXPECT_EQ(cache.tensors, 5U);
    EXPECT_EQ(cache.restore_ns, 77U);
    EXPECT_EQ(cache.bytes_at_rest(), 2000U);
    EXPECT_EQ(cache.ratio(), 0.5);
    EXPECT_EQ(statistics.stashes[2].kind, StashStatistics::Kind::frozen);
}

// Their totals interest nobody, and a program may have a budget for each request.
TEST_P(SegmentSnapshot, LeavesOutStashesWithoutTensorsOfBudgetsThatEnded) {
    put(segment.header().region<BudgetRecord>().used, 1);
    put(segment.header().region<StashRecord>().used, 1);
    segment.add_budget("request 2", 3, 0);
    segment.add_stash("request 1, all restored", 10, 2);
    segment.add_stash("request 2, all restored", 11, 3);
    put(segment.add_stash("request 1", 12, 2).totals.tensors, 1);
    const ProcessSnapshot statistics = snapshot();
    ASSERT_EQ(statistics.stashes.size(), 2U);
    EXPECT_STREQ(statistics.stashes[0].name, "request 2, all restored");
    EXPECT_STREQ(statistics.stashes[1].name, "request 1");
}

TEST_P(SegmentSnapshot, ReportsInconsistentSnapshot) {
    segment.add_pool("pool", 3);
    put(segment.header().epoch, 7);
    const ProcessSnapshot statistics = snapshot();
    EXPECT_FALSE(statistics.consistent);
    EXPECT_EQ(statistics.pools.size(), 1U) << "shown nevertheless";
}

// As many records as fit, all with the same number: summing all counters for each pool would take
// forever.
TEST_P(SegmentSnapshot, SumsEachCountersRecordOnce) {
    for (std::size_t i = 1; i < count_of<PoolRecord>; ++i) segment.add_pool("same", 5);
    for (std::size_t i = 0; i < count_of<CountersRecord>; ++i) segment.add_counters(5, i + 1);
    const ProcessSnapshot statistics = snapshot();
    EXPECT_EQ(statistics.pools.size(), count_of<PoolRecord> - 1);
    EXPECT_EQ(statistics.threads.size(), count_of<CountersRecord>);
}

}  // namespace
}  // namespace tensorpool::statistics
