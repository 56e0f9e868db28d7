#include "limits/budget_node.hpp"

#include <gtest/gtest.h>

#include <tensorpool/budget.hpp>

#include "limits/budget_node.hpp"
#include "limits/charged.hpp"
#include "support/waits_for_lock_linux.hpp"

namespace tensorpool::limits {
namespace {

/// The lock of all budgets. Before it is unlocked, a second reference to the budget ends.
struct LockThatDrops {
    BudgetNode& ended;

    void lock() { budgets().mutex.lock(); }
    void unlock() {
        ended.hold();
        ended.let_go_locked();
        budgets().mutex.unlock();
    }
};

// A record that was dropped twice would serve two budgets.
TEST(BudgetNode, IsDroppedOnceIfTwoThreadsLetGoOfItLast) {
    if (!testing::can_see_waits())
        GTEST_SKIP() << "the system does not report what threads wait for";
    BudgetNode* const ended = BudgetNode::open(nullptr, "ended", {});
    ASSERT_NE(ended, nullptr);
    ended->hold();
    ended->end();
    LockThatDrops lock{*ended};
    ASSERT_TRUE(testing::waits_for(lock, [&] { ended->let_go(); }));
    const Budget one("one");
    const Budget other("other");
    const testing::Charged charged(one, 1);
    EXPECT_EQ(other.in_use(), 0U);
}

TEST(BudgetNode, ReferencesThatDoNotEndItTakeNoLock) {
    if (!testing::can_see_waits())
        GTEST_SKIP() << "the system does not report what threads wait for";
    BudgetNode* const node = BudgetNode::open(nullptr, "held", {});
    ASSERT_NE(node, nullptr);
    EXPECT_FALSE(testing::waits_for(budgets().mutex, [&] {
        node->hold();
        node->let_go();
    }));
    node->end();
}

}  // namespace
}  // namespace tensorpool::limits
