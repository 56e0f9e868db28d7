#include "limits/pressure_watch.hpp"

#include <gtest/gtest.h>

#include "limits/charged.hpp"

namespace tensorpool::limits {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::size_t unknown_bytes = PressureWatch::unknown_bytes;

struct FakePressure {
    static inline platform::MemoryPressure now = {};
    static inline std::size_t missing_bytes = 0;
    static inline int looks = 0;
    static void reset() {
        now = {.machine_stalled_us = 1'000'000, .group_stalled_us = 500, .events = 7};
        missing_bytes = 0;
        looks = 0;
    }
    static PressureWatch::Source source() {
        return {[]() noexcept {
                    ++looks;
                    return now;
                },
                []() noexcept { return missing_bytes; }};
    }
};

class PressureWatchTest : public ::testing::Test {
protected:
    void SetUp() override {
        FakePressure::reset();
        EXPECT_EQ(watch_.wanted_bytes(second_ns), 0U) << "what was before is not known";
    }
    PressureWatch watch_{FakePressure::source()};
};

TEST_F(PressureWatchTest, LooksAtMostTenTimesASecond) {
    for (std::uint64_t ms = 0; ms != 1000; ++ms) {
        EXPECT_EQ(watch_.wanted_bytes(second_ns + ms * 1'000'000), 0U);
    }
    EXPECT_EQ(FakePressure::looks, 10);
}

TEST_F(PressureWatchTest, StallsOfATenthOfTheTimeArePressure) {
    FakePressure::now.machine_stalled_us += 90'000;
    EXPECT_EQ(watch_.wanted_bytes(2 * second_ns), 0U);
    FakePressure::now.machine_stalled_us += 110'000;
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns), unknown_bytes);
    FakePressure::now.group_stalled_us += 110'000;
    EXPECT_EQ(watch_.wanted_bytes(4 * second_ns), unknown_bytes);
    EXPECT_EQ(watch_.wanted_bytes(5 * second_ns), 0U) << "no thread waited since";
}

TEST_F(PressureWatchTest, LimitOfAGroupThatWasMetIsPressure) {
    ++FakePressure::now.events;
    EXPECT_EQ(watch_.wanted_bytes(2 * second_ns), unknown_bytes);
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns), 0U);
}

TEST_F(PressureWatchTest, LittleMemoryLeftIsPressure) {
    FakePressure::missing_bytes = 1000;
    EXPECT_EQ(watch_.wanted_bytes(2 * second_ns), 1000U);
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns), 1000U);
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns + 1), 0U) << "it looked just now";
}

TEST_F(PressureWatchTest, FilesThatCannotBeReadForAWhileAreNoPressure) {
    const platform::MemoryPressure counted = FakePressure::now;
    FakePressure::now = {};
    EXPECT_EQ(watch_.wanted_bytes(2 * second_ns), 0U);
    FakePressure::now = counted;
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns), 0U);
    ++FakePressure::now.events;
    EXPECT_EQ(watch_.wanted_bytes(4 * second_ns), unknown_bytes);
}

TEST_F(PressureWatchTest, MoveToAGroupThatCountedLessIsNoPressure) {
    FakePressure::now.group_stalled_us = 100;
    FakePressure::now.events = 2;
    EXPECT_EQ(watch_.wanted_bytes(2 * second_ns), 0U);
    FakePressure::now.events = 3;
    EXPECT_EQ(watch_.wanted_bytes(3 * second_ns), unknown_bytes);
}

TEST(PressureWatchFork, ChildLooksAlthoughAThreadOfItsParentWasLooking) {
    static constinit PressureWatch watch({[]() noexcept {
                                              if (FakePressure::looks++ == 0) {
                                                  EXPECT_EQ(watch.wanted_bytes(second_ns), 0U);
                                                  watch.forget_looker();  // as if in a child
                                                  EXPECT_EQ(watch.wanted_bytes(2 * second_ns),
                                                            1000U);
                                              }
                                              return FakePressure::now;
                                          },
                                          []() noexcept { return FakePressure::missing_bytes; }});
    FakePressure::reset();
    FakePressure::missing_bytes = 1000;
    EXPECT_EQ(watch.wanted_bytes(second_ns), 1000U);
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
    const testing::Charged of_one(one, 1600);
    const testing::Charged of_two(two, 160);
    const testing::Charged of_without(without, 160);
    const HolderRegistration asked_for_one = one.add_holder(first);
    const HolderRegistration asked_for_two = two.add_holder(second);
    ask_all_holders(PressureWatch::unknown_bytes);
    EXPECT_EQ(first.asked, 100U);
    EXPECT_EQ(second.asked, 10U);
    // Roots are asked in the order in which they were made, the last one first.
    ask_all_holders(30);
    EXPECT_EQ(first.asked, 120U) << "less is missing than a sixteenth";
    EXPECT_EQ(second.asked, 20U);
}

}  // namespace
}  // namespace tensorpool::limits
