#include "rest/map/entry_table.hpp"

#include <gtest/gtest.h>

namespace tensorpool::stashing {
namespace {

TEST(EntryList, KeepsTheOrderOfInsertion) {
    MapEntry entries[] = {{0, nullptr, {}}, {1, nullptr, {}}, {2, nullptr, {}}};
    EntryList list(&MapEntry::by_use);
    for (MapEntry& entry : entries) list.push_back(entry);
    EntryList::remove(entries[1]);
    EXPECT_EQ(entries[1].by_use.list, nullptr);
    EntryList::remove(entries[1]);  // in no list: nothing happens
    EXPECT_EQ(list.first(), &entries[0]);
    EntryList::remove(entries[0]);
    EXPECT_EQ(list.first(), &entries[2]);
    list.push_back(entries[0]);
    EntryList::remove(entries[2]);
    EXPECT_EQ(list.first(), &entries[0]);
    EntryList::remove(entries[0]);
    EXPECT_EQ(list.first(), nullptr);
}

TEST(EntryList, EntriesAreInOneListForEachOfTheirLinks) {
    MapEntry entries[] = {{0, nullptr, {}}, {1, nullptr, {}}};
    EntryList in_memory(&MapEntry::by_use);
    EntryList compressed(&MapEntry::by_use);
    EntryList kept(&MapEntry::as_kept);
    for (MapEntry& entry : entries) in_memory.push_back(entry);
    for (MapEntry& entry : entries) kept.push_back(entry);
    compressed.push_back(entries[0]);
    EXPECT_EQ(in_memory.first(), &entries[1]);
    EXPECT_EQ(compressed.first(), &entries[0]);
    EXPECT_EQ(kept.first(), &entries[0]);
    kept.push_back(entries[0]);
    EXPECT_EQ(kept.first(), &entries[1]);
    EntryList::remove(entries[1]);
    EXPECT_EQ(in_memory.first(), nullptr);
    EXPECT_EQ(kept.first(), &entries[0]);
}

}  // namespace
}  // namespace tensorpool::stashing
