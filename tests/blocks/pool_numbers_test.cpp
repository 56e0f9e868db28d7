#include "blocks/pool_numbers.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tensorpool::blocks {
namespace {

TEST(PoolNumbers, AreTheLowestFreeAndNeverTheGlobalPools) {
    PoolNumbers numbers;
    const unsigned first = numbers.take();
    const unsigned second = numbers.take();
    const unsigned third = numbers.take();
    EXPECT_EQ(first, PoolNumbers::first) << "smaller numbers are reserved";
    EXPECT_NE(first, PoolNumbers::global);
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    numbers.give_back(second);
    numbers.give_back(first);
    EXPECT_EQ(numbers.take(), first);
    EXPECT_EQ(numbers.take(), second);
}

TEST(PoolNumbers, EachIsTakenOnceUntilNoneIsLeft) {
    PoolNumbers numbers;
    std::set<unsigned> taken;
    for (unsigned number = numbers.take(); number != PoolNumbers::none; number = numbers.take()) {
        ASSERT_TRUE(taken.insert(number).second);
        ASSERT_LT(number, PoolNumbers::end);
    }
    EXPECT_EQ(taken.size(), PoolNumbers::end - PoolNumbers::first);
    const unsigned last = *taken.rbegin();
    numbers.give_back(last);
    EXPECT_EQ(numbers.take(), last);
}

}  // namespace
}  // namespace tensorpool::blocks
