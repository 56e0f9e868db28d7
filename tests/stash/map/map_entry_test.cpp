#include "stash/map/map_entry.hpp"

#include <gtest/gtest.h>

namespace tensorpool::stashing {
namespace {

TEST(EntryList, KeepsTheOrderOfInsertion) {
    MapEntry entries[] = {{0, nullptr, {}}, {1, nullptr, {}}, {2, nullptr, {}}};
    EntryList list;
    for (MapEntry& entry : entries) list.push_back(entry);
    EntryList::remove(entries[1]);
    EXPECT_EQ(entries[1].list, nullptr);
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

}  // namespace
}  // namespace tensorpool::stashing
