#include "top/highest.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command {
namespace {

TEST(Highest, KeepsTheHighestOfEachKey) {
    Highest highest;
    EXPECT_EQ(highest.see("a", 5), 5u);
    EXPECT_EQ(highest.see("a", 3), 5u);
    EXPECT_EQ(highest.see("b", 1), 1u);
    EXPECT_EQ(highest.get("a"), 5u);
    EXPECT_EQ(highest.get("never seen"), 0u);
}

TEST(Highest, ResetKeepsTheLastValue) {
    Highest highest;
    highest.see("a", 5);
    highest.see("a", 3);
    highest.reset();
    EXPECT_EQ(highest.get("a"), 3u);
    EXPECT_EQ(highest.see("a", 4), 4u);
}

}  // namespace
}  // namespace tensorpool::command
