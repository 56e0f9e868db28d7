#include "pages/record_arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>
#include <thread>
#include <vector>

#include "pages/random.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

struct alignas(64) Record {
    std::uint64_t value = 7;
    std::array<std::uint64_t, 31> more = {};
};

constexpr std::size_t slab_bytes = std::size_t{16} << 10;
constexpr std::size_t per_slab = slab_bytes / sizeof(Record) - 1;  // the slab's head takes one

std::vector<Record*> make(RecordPool<Record>& pool, std::size_t count) {
    std::vector<Record*> records;
    for (std::size_t i = 0; i < count; ++i) records.push_back(pool.make());
    return records;
}

TEST(RecordPool, HoldsNothingBeforeItsFirstRecord) {
    EXPECT_EQ(RecordPool<Record>().slab_bytes_held(), 0U);
}

TEST(RecordPool, ManyRecordsAreFreshAlignedAndDistinct) {
    RecordPool<Record> pool;
    const std::vector<Record*> records = make(pool, 10'000);
    for (Record* const record : records) {
        ASSERT_NE(record, nullptr);
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(record) % alignof(Record), 0U);
        ASSERT_EQ(record->value, 7U) << "not fresh, or shared with another";
        record->value = reinterpret_cast<std::uintptr_t>(record);
        record->more.fill(record->value);
    }
    for (Record* const record : records) {
        ASSERT_EQ(record->value, reinterpret_cast<std::uintptr_t>(record));
        ASSERT_EQ(record->more.back(), record->value);
    }
    EXPECT_EQ(pool.slab_bytes_held(), (10'000 + per_slab - 1) / per_slab * slab_bytes);
}

TEST(RecordPool, DestroyedRecordIsReusedAndFresh) {
    RecordPool<Record> pool;
    Record* const first = pool.make();
    first->value = 99;
    pool.destroy(first);
    Record* const second = pool.make();
    EXPECT_EQ(second, first);
    EXPECT_EQ(second->value, 7U);
}

TEST(RecordPool, EmptySlabsAreReturnedExceptOne) {
    RecordPool<Record> pool;
    std::vector<Record*> records = make(pool, 20 * per_slab);
    EXPECT_EQ(pool.slab_bytes_held(), 20 * slab_bytes);
    testing::Random(1).shuffle(records);
    for (Record* const record : records) pool.destroy(record);
    EXPECT_EQ(pool.slab_bytes_held(), slab_bytes);
}

TEST(RecordPool, FullSlabWithOneDestroyedRecordTakesTheNext) {
    RecordPool<Record> pool;
    const std::vector<Record*> records = make(pool, 3 * per_slab);
    pool.destroy(records[per_slab]);
    EXPECT_EQ(pool.make(), records[per_slab]);
    EXPECT_EQ(pool.slab_bytes_held(), 3 * slab_bytes);
}

// Otherwise each pair of `make` and `destroy` would cost two system calls.
TEST(RecordPool, OneRecordMadeAndDestroyedBesideFullSlabsKeepsItsSlab) {
    RecordPool<Record> pool;
    const std::vector<Record*> full = make(pool, 2 * per_slab);
    pool.destroy(pool.make());
    EXPECT_EQ(pool.slab_bytes_held(), 3 * slab_bytes);
    pool.destroy(pool.make());
    EXPECT_EQ(pool.slab_bytes_held(), 3 * slab_bytes);
    for (Record* const record : full) pool.destroy(record);
    EXPECT_EQ(pool.slab_bytes_held(), slab_bytes) << "only that slab is kept";
}

TEST(RecordPool, RandomUseNeverReturnsARecordTwice) {
    RecordPool<Record> pool;
    testing::Random random(20240607);
    std::vector<Record*> live;
    for (unsigned step = 0; step < 20'000; ++step) {
        const bool grow = step / 2000 % 2 == 0 ? random.below(4) != 0 : random.below(4) == 0;
        if (grow || live.empty()) {
            Record* const record = pool.make();
            ASSERT_EQ(record->value, 7U);
            record->value = reinterpret_cast<std::uintptr_t>(record);
            live.push_back(record);
        } else {
            std::swap(live[random.below(live.size())], live.back());
            ASSERT_EQ(live.back()->value, reinterpret_cast<std::uintptr_t>(live.back()));
            pool.destroy(live.back());
            live.pop_back();
        }
        ASSERT_GE(pool.slab_bytes_held() / slab_bytes * per_slab, live.size());
    }
    ASSERT_EQ(std::set<Record*>(live.begin(), live.end()).size(), live.size());
    for (Record* const record : live) pool.destroy(record);
    EXPECT_EQ(pool.slab_bytes_held(), slab_bytes);
}

TEST(RecordPool, ThreadsMakeAndDestroyEachOthersRecords) {
    RecordPool<Record> pool;
    std::array<std::vector<Record*>, 2> made;
    for (int round = 0; round < 20; ++round) {
        std::thread one([&] { made[0] = make(pool, 500); });
        std::thread other([&] { made[1] = make(pool, 500); });
        one.join();
        other.join();
        std::set<Record*> all(made[0].begin(), made[0].end());
        all.insert(made[1].begin(), made[1].end());
        ASSERT_EQ(all.size(), 1000U);
        std::thread first([&] {
            for (Record* const record : made[1]) pool.destroy(record);
        });
        std::thread second([&] {
            for (Record* const record : made[0]) pool.destroy(record);
        });
        first.join();
        second.join();
    }
    EXPECT_EQ(pool.slab_bytes_held(), slab_bytes);
}

// Readers without a lock may still read former records.
TEST(RecordPool, KeptSlabsStayReadableWithoutTheirPages) {
    const std::size_t head = std::min(platform::page_bytes(), slab_bytes);
    RecordPool<Record> pool;
    pool.keep_slabs();
    std::vector<Record*> records = make(pool, 20 * per_slab);
    for (Record* const record : records) record->more.fill(1);
    for (Record* const record : records) pool.destroy(record);
    EXPECT_EQ(pool.slab_bytes_held(), slab_bytes + 19 * head);
    const auto is_dropped = [](const Record* record) {
        const volatile std::uint64_t& word = record->more[20];
        return word == 0;
    };
    // One record of each slab may lie in both a kept and a dropped page.
    const std::size_t in_slab = (slab_bytes - head) / sizeof(Record);
    const std::size_t min_bytes = in_slab == 0 ? 0 : 19 * (in_slab - 1);
    EXPECT_GE(std::count_if(records.begin(), records.end(), is_dropped),
              static_cast<std::ptrdiff_t>(min_bytes));
    const std::vector<Record*> again = make(pool, 20 * per_slab);
    for (Record* const record : again) ASSERT_EQ(record->value, 7U);
    EXPECT_EQ(std::set<Record*>(again.begin(), again.end()),
              std::set<Record*>(records.begin(), records.end()))
        << "the same slabs, and no record twice";
    EXPECT_EQ(pool.slab_bytes_held(), 20 * slab_bytes);
}

TEST(RecordPool, CountsNoByteOfDroppedPagesWhenItEnds) {
    detail::Counter bytes = 0;
    {
        RecordPool<Record> pool;
        pool.count_in(bytes);
        pool.keep_slabs();
        for (Record* const record : make(pool, 3 * per_slab)) pool.destroy(record);
        EXPECT_EQ(bytes.load(), pool.slab_bytes_held());
        EXPECT_GT(bytes.load(), 0U);
    }
    EXPECT_EQ(bytes.load(), 0U);
}

}  // namespace
}  // namespace tensorpool::pages
