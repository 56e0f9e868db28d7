#include "record/outcome.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::record {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t ring_entries = 16'384;

TEST(Pace, ShortensThePauseAfterManyEntries) {
    Pace pace;
    const auto before = pace.pause();
    pace.note(ring_entries / 2);
    EXPECT_LT(pace.pause(), before);
    for (int i = 0; i < 100; ++i) pace.note(ring_entries);
    EXPECT_GT(pace.pause(), 0us);
    EXPECT_LE(pace.pause(), 100us);
}

TEST(Pace, LengthensThePauseAfterFewEntries) {
    Pace pace;
    for (int i = 0; i < 100; ++i) pace.note(0);
    // At one call per microsecond, a ring takes twice as long to fill.
    EXPECT_LE(pace.pause(), 8ms);
    EXPECT_GE(pace.pause(), 4ms);
}

TEST(Pace, KeepsThePauseInBetween) {
    Pace pace;
    const auto before = pace.pause();
    pace.note(ring_entries / 8);
    EXPECT_EQ(pace.pause(), before);
}

}  // namespace
}  // namespace tensorpool::command::record
