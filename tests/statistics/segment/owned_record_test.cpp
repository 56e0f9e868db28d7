// Pools and counters for which the segment has no record left. The tests run in child processes, so
// that the records of this process stay free.

#include "statistics/segment/owned_record.hpp"
#include "statistics/add_records.hpp"

#include <tensorpool/memory_pool.hpp>

#include <unistd.h>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

#include "statistics/own_counters.hpp"
#include "statistics/segment/pool_counters.hpp"
#include "statistics/segment/segment.hpp"
#include "support/child_process.hpp"

namespace tensorpool::statistics {
namespace {

using detail::add;
using testing::holds_in_child;
using testing::OwnCounters;

void take_all_pools() {
    while (add_pool(segment(), "filler", 0) != nullptr) {
    }
}

void take_all_counters() {
    PoolRecord* const pool = add_pool(segment(), "filler", 0);
    while (add_slot(segment(), *pool) != nullptr) {
    }
}

std::uint64_t left_out_pools() {
    return segment().header()->region<PoolRecord>().left_out;
}
std::uint64_t left_out_counters() {
    return segment().header()->region<CountersRecord>().left_out;
}

template <class Record>
bool is_zeros(const Record& record) {
    for (std::size_t i = 0; i < words_of<Record>; ++i) {
        if (as_words(record)[i] != 0) return false;
    }
    return true;
}

bool others_are_zeros() {
    const PoolRecord& other = *segment().other<PoolRecord>();
    return is_zeros(other.totals) && is_zeros(other.left_out) && is_zeros(other.shared);
}

TEST(OwnedRecord, IsInSegmentIfRecordIsFree) {
    auto owned = own_pool("mine", 7);
    ASSERT_TRUE(owned);
    EXPECT_TRUE(owned.is_in_segment());
    EXPECT_EQ(owned->limit_bytes, 7U);
    OwnedRecord moved(std::move(owned));
    EXPECT_FALSE(owned);
    EXPECT_TRUE(moved);
    const PoolRecord& record = *moved;
    EXPECT_NE(record.id, 0U);
    { const OwnedRecord last(std::move(moved)); }
    EXPECT_EQ(record.id, 0U) << "returned once";
}

TEST(OwnedRecord, IsPrivateAndLeftOutIfSegmentIsFull) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        const std::uint64_t epoch = segment().header()->epoch;
        {
            const auto record = own_pool("late", 7);
            const auto another = own_pool("later", 0);
            if (!record || record.is_in_segment() || left_out_pools() != 2) return false;
            if (record->id == 0 || record->id == another->id) return false;
            char name[Name::bytes];
            load_name(record->name, name);
            if (std::string(name) != "late" || record->limit_bytes != 7) return false;
        }
        return left_out_pools() == 0 && segment().header()->epoch % 2 == epoch % 2;
    }));
}

TEST(OwnedRecord, RecordOfRemovedPoolIsReused) {
    EXPECT_TRUE(holds_in_child([] {
        auto first = own_pool("first", 0);
        take_all_pools();
        {
            const auto record = own_pool("late", 0);
            if (record.is_in_segment()) return false;
        }
        { const OwnedRecord gone(std::move(first)); }
        return own_pool("next", 0).is_in_segment();
    }));
}

TEST(OwnedRecord, PrivateRecordIsSummedUnderOtherAndSubtractedAtEnd) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        const PoolRecord& other = *segment().other<PoolRecord>();
        {
            OwnCounters counters;
            OwnCounters more;
            OwnedCounters* const owned = counters.take();
            add(owned->counters->buckets[2].allocations, 5);
            add(counters.shared().buckets[2].allocations, 1);
            add(more.take()->counters->buckets[2].allocations, 10);
            counters.record->totals.growths = 3;
            if (!others_are_zeros()) return false;
            counters.PoolCounters::fold();
            more.PoolCounters::fold();
            counters.PoolCounters::fold();
            if (other.left_out.buckets[2].allocations + other.shared.buckets[2].allocations != 16)
                return false;
            if (other.totals.growths != 3) return false;
            if (counters.allocations() != 6 || more.allocations() != 10) return false;
            if (left_out_counters() != 2) return false;
            counters.give_back(*owned);
        }
        return others_are_zeros() && left_out_counters() == 0 && left_out_pools() == 0;
    }));
}

TEST(OwnedRecord, PrivateCountersAreSummedInPoolForReadersOnly) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        OwnCounters counters;
        OwnedCounters* const one = counters.take();
        OwnedCounters* const two = counters.take();
        if (one->record != nullptr || left_out_counters() != 2) return false;
        add(one->counters->buckets[0].allocations, 5);
        add(two->counters->buckets[0].allocations, 70);
        if (counters.left_out_allocations() != 0) return false;
        counters.fold(*one);
        if (counters.left_out_allocations() != 5) return false;
        counters.fold(*two);
        counters.fold(*two);
        if (counters.left_out_allocations() != 75 || counters.allocations() != 75) return false;
        add(two->counters->buckets[0].allocations, 1);
        counters.give_back(*two);
        if (counters.left_out_allocations() != 76) return false;
        return counters.take() == two && counters.allocations() == 76 && others_are_zeros();
    }));
}

// Number 10 of each finer series (16 to 48 B) counts in the row of 64 B.
TEST(OwnedRecord, PrivateCountersOfFinerSizesAreSummedByRow) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        OwnCounters counters;
        if (!counters.add_shared(2)) return false;
        add(counters.shared(2).buckets[10].allocations, 1);
        OwnedCounters* const owned = counters.take(2);
        if (owned == nullptr || owned->record != nullptr) return false;
        add(owned->counters->buckets[10].allocations, 5);
        counters.fold(*owned);
        counters.fold(*owned);
        return counters.left_out_allocations() == 5 && counters.allocations() == 6 &&
               counters.in_use_bytes() == 6 * 32 && counters.take() != owned;
    }));
}

TEST(OwnedRecord, DestroyedPoolNoLongerCountsAsLeftOut) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        {
            OwnCounters counters;
            counters.fold(*counters.take());
            counters.take();
        }
        OwnCounters next;
        return left_out_counters() == 0 && next.left_out_allocations() == 0 &&
               is_zeros(next.record->left_out);
    }));
}

// Whole pools -----------------------------------------------------------------------------------

bool pool_counts_exactly() {
    MemoryPool pool({.name = "late"});
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(pool.allocate(1000));
    void* const large = pool.allocate(1 << 20);
    std::thread([&] { pool.deallocate(pool.allocate(5000), 5000); }).join();
    const PoolStatistics statistics = pool.statistics();
    if (statistics.in_use_bytes != 1000 * 1024 + (1 << 20)) return false;
    if (statistics.allocations != 1002 || statistics.deallocations != 1) return false;
    if (std::string(statistics.name) != "late" || statistics.capacity_bytes == 0) return false;
    for (void* const block : blocks) pool.deallocate(block, 1000);
    pool.deallocate(large);
    pool.trim();
    return pool.get_total_allocated() == 0 && pool.get_total_capacity() == 0;
}

TEST(OwnedRecord, PoolWithoutRecordCountsExactly) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        return pool_counts_exactly() && others_are_zeros() && left_out_pools() == 0 &&
               left_out_counters() == 0;
    }));
}

TEST(OwnedRecord, PoolWithoutCountersRecordsCountsExactly) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        return pool_counts_exactly() && others_are_zeros() && left_out_counters() == 0;
    }));
}

TEST(OwnedRecord, GrowthPublishesPoolWithoutRecord) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        const PoolRecord& other = *segment().other<PoolRecord>();
        MemoryPool pool({.growth = {.step = 1 << 20}});
        for (int i = 0; i < 40; ++i) pool.deallocate(pool.allocate(64), 64);
        (void)pool.allocate(2 << 20);
        (void)pool.allocate(4 << 20);
        return other.totals.capacity_bytes == pool.get_total_capacity() &&
               other.left_out.buckets[0].allocations == 40 && other.left_out.large.allocations >= 1;
    }));
}

TEST(OwnedRecord, ForkedChildCountsWithoutRecord) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        take_all_pools();
        MemoryPool pool;
        void* const block = pool.allocate(1000);
        const bool holds = holds_in_child([&] {
            if (left_out_pools() != 1) return false;
            pool.deallocate(block, 1000);
            return pool.get_total_allocated() == 0 && pool_counts_exactly();
        });
        return holds && pool.get_total_allocated() == 1024;
    }));
}

// Not with sanitizers: their malloc does not survive a fork during another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// A fork takes the lock under which a private record is folded.
TEST(OwnedRecord, ForkDuringFoldDoesNotHang) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        MemoryPool pool;
        std::atomic<bool> over = false;
        std::thread grows([&] {
            while (!over) {
                pool.deallocate(pool.allocate(3 << 20));
                pool.trim();
            }
        });
        bool holds = true;
        for (int round = 0; round < 100 && holds; ++round) {
            holds = holds_in_child([&] {
                alarm(30);
                pool.deallocate(pool.allocate(3 << 20));
                pool.trim();
                return true;
            });
        }
        over = true;
        grows.join();
        return holds;
    }));
}
#endif

}  // namespace
}  // namespace tensorpool::statistics
