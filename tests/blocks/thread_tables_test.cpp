#include "blocks/thread_registry.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorpool::blocks {
namespace {

class ThreadTablesTest : public ::testing::Test {
protected:
    std::vector<ThreadCaches*> running() {
        std::vector<ThreadCaches*> found;
        tables_.for_each([&](ThreadCaches& table) { found.push_back(&table); });
        return found;
    }

    static constexpr unsigned far = 10 * ThreadCaches::leaf_size;

    ThreadTables tables_;
};

TEST_F(ThreadTablesTest, RemovedTableAndItsLeavesAreUsedAgain) {
    ThreadCaches* const table = tables_.add();
    ASSERT_NE(table, nullptr);
    EXPECT_TRUE(table->has_leaf_of(0));
    EXPECT_FALSE(table->has_leaf_of(far));
    ASSERT_TRUE(tables_.add_leaf(*table, far));
    const OwnCaches* const leaf = &table->own_leaf(far);
    EXPECT_TRUE(tables_.add_leaf(*table, far)) << "it has the leaf";
    EXPECT_EQ(&table->own_leaf(far), leaf);
    tables_.remove(*table);
    EXPECT_TRUE(running().empty());
    EXPECT_FALSE(table->has_leaf_of(far));
    EXPECT_EQ(tables_.add(), table);
    ASSERT_TRUE(tables_.add_leaf(*table, 2 * far));
    EXPECT_EQ(&table->own_leaf(2 * far), leaf);
}

TEST_F(ThreadTablesTest, ListsTablesInUse) {
    ThreadCaches* const first = tables_.add();
    ThreadCaches* const second = tables_.add();
    EXPECT_EQ(running(), (std::vector{second, first}));
    tables_.remove(*first);
    EXPECT_EQ(running(), std::vector{second});
}

TEST_F(ThreadTablesTest, AbandonedTablesAreClearedWhenTheyAreUsedAgain) {
    ThreadCaches* const own = tables_.add();
    ThreadCaches* const other = tables_.add();
    ASSERT_TRUE(tables_.add_leaf(*other, far));
    Cache* const left = reinterpret_cast<Cache*>(&tables_);
    other->own(3) = other->own(far) = left;
    tables_.abandon_others(own);
    EXPECT_EQ(running(), std::vector{own});
    EXPECT_EQ(other->own(3), left) << "it was only read";
    ASSERT_EQ(tables_.add(), other);
    EXPECT_EQ(other->own(3), nullptr);
    EXPECT_FALSE(other->has_leaf_of(far));
    tables_.abandon_others(nullptr);
    EXPECT_TRUE(running().empty());
}

}  // namespace
}  // namespace tensorpool::blocks
