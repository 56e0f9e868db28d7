#include "platform/process/fork_handlers.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorpool::platform {
namespace {

/// Calls of two places' handlers, one letter each: capital letters for handlers called first before
/// a fork.
std::string calls;

bool set_inner(ForkTable& table) {
    return table.set(ForkStage::statistics,
                     {[] { calls += 'b'; }, [] { calls += 'p'; }, [] { calls += 'c'; }});
}

bool set_outer(ForkTable& table) {
    return table.set(ForkStage::arenas,
                     {[] { calls += 'B'; }, [] { calls += 'P'; }, [] { calls += 'C'; }});
}

std::string calls_of_parent(ForkTable& table) {
    calls.clear();
    table.before();
    table.after_in_parent();
    return calls;
}

std::string calls_of_child(ForkTable& table) {
    calls.clear();
    table.before();
    table.after_in_child();
    return calls;
}

TEST(ForkTable, CallsInOrderOfPlaces) {
    ForkTable table;
    EXPECT_TRUE(set_outer(table) && set_inner(table));
    EXPECT_EQ(calls_of_parent(table), "BbpP");
    EXPECT_EQ(calls_of_child(table), "BbcC");
    ForkTable other;
    EXPECT_TRUE(set_inner(other) && set_outer(other));
    EXPECT_EQ(calls_of_parent(other), "BbpP");
    EXPECT_EQ(calls_of_child(other), "BbcC");
}

TEST(ForkTable, EmptyTableCallsNothing) {
    ForkTable table;
    EXPECT_EQ(calls_of_parent(table), "");
}

TEST(ForkTable, PlaceIsSetOnce) {
    ForkTable table;
    EXPECT_TRUE(set_outer(table) && set_outer(table));
    EXPECT_TRUE(table.set(ForkStage::arenas, {}));
    EXPECT_EQ(calls_of_parent(table), "BP");
}

ForkTable* table_during_fork = nullptr;

TEST(ForkTable, HandlersSetDuringForkAreCalledAtNextFork) {
    ForkTable table;
    table_during_fork = &table;
    EXPECT_TRUE(table.set(ForkStage::statistics,
                          {[] { (void)set_outer(*table_during_fork); }, [] {}, [] {}}));
    EXPECT_EQ(calls_of_parent(table), "");
    EXPECT_EQ(calls_of_parent(table), "BP");
}

}  // namespace
}  // namespace tensorpool::platform
