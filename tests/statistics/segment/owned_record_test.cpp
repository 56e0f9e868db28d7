// Pools and slots for which the segment has no place left. In child processes, so that this one's
// places stay.

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
    auto place = own_pool("mine", 7);
    ASSERT_TRUE(place);
    EXPECT_TRUE(place.is_in_segment());
    EXPECT_EQ(place->limit_bytes, 7U);
    OwnedRecord moved(std::move(place));
    EXPECT_FALSE(place);
    EXPECT_TRUE(moved);
    const PoolRecord& record = *moved;
    EXPECT_NE(record.id, 0U);
    { const OwnedRecord last(std::move(moved)); }
    EXPECT_EQ(record.id, 0U) << "given back once";
}

TEST(OwnedRecord, IsPrivateAndLeftOutIfSegmentIsFull) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_pools();
        const std::uint64_t epoch = segment().header()->epoch;
        {
            const auto place = own_pool("late", 7);
            const auto another = own_pool("later", 0);
            if (!place || place.is_in_segment() || left_out_pools() != 2) return false;
            if (place->id == 0 || place->id == another->id) return false;
            char name[Name::bytes];
            load_name(place->name, name);
            if (std::string(name) != "late" || place->limit_bytes != 7) return false;
        }
        return left_out_pools() == 0 && segment().header()->epoch % 2 == epoch % 2;
    }));
}

TEST(OwnedRecord, RecordOfRemovedPoolIsReused) {
    EXPECT_TRUE(holds_in_child([] {
        auto first = own_pool("first", 0);
        take_all_pools();
        {
            const auto place = own_pool("late", 0);
            if (place.is_in_segment()) return false;
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
            OwnCounters slots;
            OwnCounters more;
            OwnedCounters* const slot = slots.take();
            add(slot->counters->buckets[2].allocations, 5);
            add(slots.shared().buckets[2].allocations, 1);
            add(more.take()->counters->buckets[2].allocations, 10);
            slots.place->totals.growths = 3;
            if (!others_are_zeros()) return false;
            slots.PoolCounters::fold();
            more.PoolCounters::fold();
            slots.PoolCounters::fold();
            if (other.left_out.buckets[2].allocations + other.shared.buckets[2].allocations != 16)
                return false;
            if (other.totals.growths != 3) return false;
            if (slots.allocations() != 6 || more.allocations() != 10) return false;
            if (left_out_counters() != 2) return false;
            slots.give_back(*slot);
        }
        return others_are_zeros() && left_out_counters() == 0 && left_out_pools() == 0;
    }));
}

TEST(OwnedRecord, PrivateCountersAreSummedInPoolForReadersOnly) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        OwnCounters slots;
        OwnedCounters* const one = slots.take();
        OwnedCounters* const two = slots.take();
        if (one->record != nullptr || left_out_counters() != 2) return false;
        add(one->counters->buckets[0].allocations, 5);
        add(two->counters->buckets[0].allocations, 70);
        if (slots.left_out_allocations() != 0) return false;
        slots.fold(*one);
        if (slots.left_out_allocations() != 5) return false;
        slots.fold(*two);
        slots.fold(*two);
        if (slots.left_out_allocations() != 75 || slots.allocations() != 75) return false;
        add(two->counters->buckets[0].allocations, 1);
        slots.give_back(*two);
        if (slots.left_out_allocations() != 76) return false;
        return slots.take() == two && slots.allocations() == 76 && others_are_zeros();
    }));
}

// Number 10 of each finer series, 16 to 48 B, counts in the row of 64 B.
TEST(OwnedRecord, PrivateCountersOfFinerSizesAreSummedByRow) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        OwnCounters slots;
        if (!slots.add_shared(2)) return false;
        add(slots.shared(2).buckets[10].allocations, 1);
        OwnedCounters* const slot = slots.take(2);
        if (slot == nullptr || slot->record != nullptr) return false;
        add(slot->counters->buckets[10].allocations, 5);
        slots.fold(*slot);
        slots.fold(*slot);
        return slots.left_out_allocations() == 5 && slots.allocations() == 6 &&
               slots.in_use_bytes() == 6 * 32 && slots.take() != slot;
    }));
}

TEST(OwnedRecord, DestroyedPoolNoLongerCountsAsLeftOut) {
    EXPECT_TRUE(holds_in_child([] {
        take_all_counters();
        {
            OwnCounters slots;
            slots.fold(*slots.take());
            slots.take();
        }
        OwnCounters next;
        return left_out_counters() == 0 && next.left_out_allocations() == 0 &&
               is_zeros(next.place->left_out);
    }));
}

// Whole pools -----------------------------------------------------------------------------------

bool pool_counts_exactly() {
    MemoryPool pool({.name = "late"});
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(pool.allocate(1000));
    void* const large = pool.allocate(1 << 20);
    std::thread([&] { pool.deallocate(pool.allocate(5000), 5000); }).join();
    const PoolStatistics figures = pool.statistics();
    if (figures.in_use_bytes != 1000 * 1024 + (1 << 20)) return false;
    if (figures.allocations != 1002 || figures.deallocations != 1) return false;
    if (std::string(figures.name) != "late" || figures.capacity_bytes == 0) return false;
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

// Not under sanitizers: their malloc does not survive a fork amid another thread's call.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The lock under which it is added up is among those that a fork takes.
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
