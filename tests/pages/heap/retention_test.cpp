#include "pages/heap/heap_capacity.hpp"

#include <gtest/gtest.h>

namespace tensorpool::pages {
namespace {

TEST(Retention, UnneededIsTheMinimumOfFreeBytes) {
    Retention retention;
    retention.begin(1000, 50, 700);
    EXPECT_EQ(retention.unneeded(), 700U);
    retention.saw_free(900);
    EXPECT_EQ(retention.unneeded(), 700U) << "memory that became free later was needed before";
    retention.saw_free(300);
    retention.saw_free(800);
    EXPECT_EQ(retention.unneeded(), 300U);
}

TEST(Retention, PeriodEndsAfterItsLength) {
    Retention retention;
    retention.begin(1000, 50, 0);
    EXPECT_FALSE(retention.ended(1000));
    EXPECT_FALSE(retention.ended(1049));
    EXPECT_TRUE(retention.ended(1050));
    EXPECT_TRUE(retention.ended(9000));
}

TEST(Retention, PeriodsOfZeroLengthEndImmediately) {
    Retention retention;
    retention.begin(1000, 0, 0);
    EXPECT_TRUE(retention.ended(1000));
}

TEST(Retention, PeriodEndsIfTheClockGoesBackByAPeriod) {
    Retention retention;
    retention.begin(1000, 50, 0);
    EXPECT_FALSE(retention.ended(951)) << "a thread that read the clock a little earlier";
    EXPECT_TRUE(retention.ended(950));
    EXPECT_TRUE(retention.ended(0));
    retention.begin(0, 50, 0);
    EXPECT_FALSE(retention.ended(49));
}

TEST(Retention, PeriodAtTheEndOfTheClocksRangeLasts) {
    Retention retention;
    retention.begin(UINT64_MAX - 10, 50, 0);
    EXPECT_FALSE(retention.ended(UINT64_MAX));
    EXPECT_TRUE(retention.ended(40)) << "the clock's numbers began again";
}

TEST(Retention, EachPeriodHasTheNextNumberAndANewMinimum) {
    Retention retention;
    retention.begin(0, 10, 100);
    const std::uint32_t first = retention.period();
    retention.saw_free(0);
    retention.begin(10, 10, 40);
    EXPECT_EQ(retention.period(), first + 1);
    EXPECT_EQ(retention.unneeded(), 40U);
    EXPECT_FALSE(retention.ended(19));
}

}  // namespace
}  // namespace tensorpool::pages
