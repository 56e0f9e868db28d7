#include "rest/map/entry_table.hpp"

#include <gtest/gtest.h>

namespace tensorpool::stashing {
namespace {

bool are_equal(const void* a, const void* b) {
    return *static_cast<const int*>(a) == *static_cast<const int*>(b);
}

std::shared_ptr<MapEntry> entry_of(int key, std::size_t hash) {
    return std::make_shared<MapEntry>(hash, std::make_shared<const int>(key), PooledAllocation());
}

TEST(EntryTable, FindsEntriesOfEqualHashByTheirKeys) {
    EntryTable table(&are_equal, EntryTable::Buckets(4));
    for (int key = 0; key < 5; ++key) table.insert(entry_of(key, 7));
    EXPECT_EQ(table.size(), 5U);
    const int second = 2;
    const std::shared_ptr<MapEntry> found = table.find(7, &second);
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(*static_cast<const int*>(found->key.get()), 2);
    EXPECT_EQ(table.find(8, &second), nullptr);
    EXPECT_EQ(table.remove(7, &second), found);
    EXPECT_EQ(table.remove(7, &second), nullptr);
    for (const int key : {0, 1, 3, 4}) EXPECT_NE(table.find(7, &key), nullptr);
}

TEST(EntryTable, AsksForTwiceTheBucketsWhenFullAndKeepsTheEntries) {
    EntryTable table(&are_equal, EntryTable::Buckets(2));
    table.insert(entry_of(0, 0));
    EXPECT_EQ(table.wanted_buckets(), 0U);
    table.insert(entry_of(1, 1));
    EXPECT_EQ(table.wanted_buckets(), 4U);
    EntryTable::Buckets larger(4);
    table.exchange(larger);
    EXPECT_EQ(larger.size(), 2U);
    EXPECT_EQ(table.wanted_buckets(), 0U);
    for (const int key : {0, 1})
        EXPECT_NE(table.find(static_cast<std::size_t>(key), &key), nullptr);
    int count = 0;
    table.for_each([&](MapEntry&) { ++count; });
    EXPECT_EQ(count, 2);
    EXPECT_EQ(table.take_all().size(), 4U);
    EXPECT_EQ(table.size(), 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
