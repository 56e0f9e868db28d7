#include "limits/budget_node.hpp"

#include <gtest/gtest.h>

namespace tensorpool::limits {
namespace {

/// The counters of a budget with a soft limit of 50 bytes and a hard one of 100.
class BudgetCountersTest : public ::testing::Test {
protected:
    BudgetCountersTest() { EXPECT_TRUE(counters.open("part", nullptr, {.soft = 50, .hard = 100})); }
    ~BudgetCountersTest() override {
        if (!counters.is_ended()) counters.end();
    }

    BudgetCounters counters;
};

TEST_F(BudgetCountersTest, RecordShowsNameLimitsAndParent) {
    BudgetCounters child;
    ASSERT_TRUE(child.open("child", &counters, {}));
    EXPECT_STREQ(child.statistics().name, "child");
    EXPECT_EQ(child.statistics().parent, counters.statistics().id);
    EXPECT_EQ(counters.statistics().soft_bytes, 50U);
    EXPECT_EQ(counters.statistics().hard_bytes, 100U);
    child.end();
}

TEST_F(BudgetCountersTest, LimitIsTheHardOneForRequestsThatMayPassTheSoftOne) {
    EXPECT_EQ(counters.limit(false), 50U);
    EXPECT_EQ(counters.limit(true), 100U);
    counters.set_limits({});
    EXPECT_EQ(counters.limit(false), SIZE_MAX);
    EXPECT_EQ(counters.limit(true), SIZE_MAX);
}

TEST_F(BudgetCountersTest, ChargesRaiseThePeak) {
    counters.charge(70);
    counters.refund(30);
    counters.charge(10);
    EXPECT_EQ(counters.in_use(), 50U);
    EXPECT_EQ(counters.statistics().peak_bytes, 70U);
}

TEST_F(BudgetCountersTest, ChargeOutlivesTheEndWithoutLimits) {
    counters.charge(80);
    counters.end();
    EXPECT_TRUE(counters.is_ended());
    EXPECT_EQ(counters.in_use(), 80U);
    EXPECT_EQ(counters.limit(false), SIZE_MAX);
    counters.count(&statistics::BudgetTotals::refusals);
    counters.count(&statistics::BudgetTotals::reclaims);
    counters.count(&statistics::BudgetTotals::reclaimed_bytes, 5);
    EXPECT_EQ(counters.statistics().refusals, 0U);
    counters.refund(80);
    ASSERT_TRUE(counters.open("next", nullptr, {}));
    EXPECT_EQ(counters.in_use(), 0U);
    EXPECT_EQ(counters.statistics().reclaims, 0U);
}

TEST_F(BudgetCountersTest, RefusalsAndReclaimsAreCounted) {
    counters.count(&statistics::BudgetTotals::refusals);
    counters.count(&statistics::BudgetTotals::reclaims);
    counters.count(&statistics::BudgetTotals::reclaims);
    counters.count(&statistics::BudgetTotals::reclaimed_bytes, 30);
    EXPECT_EQ(counters.statistics().refusals, 1U);
    EXPECT_EQ(counters.statistics().reclaims, 2U);
    EXPECT_EQ(counters.statistics().reclaimed_bytes, 30U);
}

}  // namespace
}  // namespace tensorpool::limits
