#include "statistics/budget/pressure_watch.hpp"

#include <gtest/gtest.h>

namespace tensorpool::statistics {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

struct FakePressure {
    static inline platform::MemoryPressure now = {};
    static inline bool is_short = false;
    static inline int looks = 0;
    static void reset() {
        now = {.machine_stalled_us = 1'000'000, .group_stalled_us = 500, .events = 7};
        is_short = false;
        looks = 0;
    }
    static PressureWatch::Source source() {
        return {[]() noexcept {
                    ++looks;
                    return now;
                },
                []() noexcept { return is_short; }};
    }
};

class PressureWatchTest : public ::testing::Test {
protected:
    void SetUp() override {
        FakePressure::reset();
        EXPECT_FALSE(watch_.is_under_pressure(second_ns)) << "what was before is not known";
    }
    PressureWatch watch_{FakePressure::source()};
};

TEST_F(PressureWatchTest, LooksAtMostTenTimesASecond) {
    for (std::uint64_t ms = 0; ms != 1000; ++ms) {
        EXPECT_FALSE(watch_.is_under_pressure(second_ns + ms * 1'000'000));
    }
    EXPECT_EQ(FakePressure::looks, 10);
}

TEST_F(PressureWatchTest, StallsOfATenthOfTheTimeArePressure) {
    FakePressure::now.machine_stalled_us += 90'000;
    EXPECT_FALSE(watch_.is_under_pressure(2 * second_ns));
    FakePressure::now.machine_stalled_us += 110'000;
    EXPECT_TRUE(watch_.is_under_pressure(3 * second_ns));
    FakePressure::now.group_stalled_us += 110'000;
    EXPECT_TRUE(watch_.is_under_pressure(4 * second_ns));
    EXPECT_FALSE(watch_.is_under_pressure(5 * second_ns)) << "no thread waited since";
}

TEST_F(PressureWatchTest, LimitOfAGroupThatWasMetIsPressure) {
    ++FakePressure::now.events;
    EXPECT_TRUE(watch_.is_under_pressure(2 * second_ns));
    EXPECT_FALSE(watch_.is_under_pressure(3 * second_ns));
}

TEST_F(PressureWatchTest, LittleMemoryLeftIsPressure) {
    FakePressure::is_short = true;
    EXPECT_TRUE(watch_.is_under_pressure(2 * second_ns));
    EXPECT_TRUE(watch_.is_under_pressure(3 * second_ns));
    EXPECT_FALSE(watch_.is_under_pressure(3 * second_ns + 1)) << "it looked just now";
}

TEST_F(PressureWatchTest, FilesThatCannotBeReadForAWhileAreNoPressure) {
    const platform::MemoryPressure counted = FakePressure::now;
    FakePressure::now = {};
    EXPECT_FALSE(watch_.is_under_pressure(2 * second_ns));
    FakePressure::now = counted;
    EXPECT_FALSE(watch_.is_under_pressure(3 * second_ns));
    ++FakePressure::now.events;
    EXPECT_TRUE(watch_.is_under_pressure(4 * second_ns));
}

TEST_F(PressureWatchTest, MoveToAGroupThatCountedLessIsNoPressure) {
    FakePressure::now.group_stalled_us = 100;
    FakePressure::now.events = 2;
    EXPECT_FALSE(watch_.is_under_pressure(2 * second_ns));
    FakePressure::now.events = 3;
    EXPECT_TRUE(watch_.is_under_pressure(3 * second_ns));
}

TEST(PressureWatchFork, ChildLooksAlthoughAThreadOfItsParentWasLooking) {
    static constinit PressureWatch watch({[]() noexcept {
                                              if (FakePressure::looks++ == 0) {
                                                  EXPECT_FALSE(watch.is_under_pressure(second_ns));
                                                  watch.forget_looker();  // as if in a child
                                                  EXPECT_TRUE(
                                                      watch.is_under_pressure(2 * second_ns));
                                              }
                                              return FakePressure::now;
                                          },
                                          []() noexcept { return FakePressure::is_short; }});
    FakePressure::reset();
    FakePressure::is_short = true;
    EXPECT_TRUE(watch.is_under_pressure(second_ns));
    EXPECT_EQ(FakePressure::looks, 2);
}

TEST(AskAllHolders, AsksEachRootForASixteenth) {
    class Holder : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return 1000; }
        std::size_t give(std::size_t bytes) noexcept override {
            asked += bytes;
            return bytes;
        }
        std::size_t asked = 0;
    } first, second;
    Budget one("one");
    Budget two("two");
    Budget without("without");
    const BudgetReservation of_one = one.reserve(1600);
    const BudgetReservation of_two = two.reserve(160);
    const BudgetReservation of_without = without.reserve(160);
    const HolderRegistration asked_for_one = one.add_holder(first);
    const HolderRegistration asked_for_two = two.add_holder(second);
    detail::BudgetNode::ask_all_holders();
    EXPECT_EQ(first.asked, 100U);
    EXPECT_EQ(second.asked, 10U);
}

}  // namespace
}  // namespace tensorpool::statistics
