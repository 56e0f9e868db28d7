#include "top/top_state.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

TEST(Highest, KeepsTheHighestOfEachKey) {
    Highest highest;
    highest.record("a", 5);
    highest.record("a", 3);
    highest.record("b", 1);
    EXPECT_EQ(highest.get("a"), 5u);
    EXPECT_EQ(highest.get("b"), 1u);
    EXPECT_EQ(highest.get("never seen"), 0u);
}

TEST(Highest, ResetKeepsTheLastValue) {
    Highest highest;
    highest.record("a", 5);
    highest.record("a", 3);
    highest.reset();
    EXPECT_EQ(highest.get("a"), 3u);
    highest.record("a", 4);
    EXPECT_EQ(highest.get("a"), 4u);
}

}  // namespace
}  // namespace tensorpool::command
