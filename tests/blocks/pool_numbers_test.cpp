#include "blocks/thread_registry.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tensorpool::blocks {
namespace {

TEST(PoolNumbers, AreTheLowestFreeAndNeverTheGlobalPools) {
    const unsigned first = PoolNumbers::take();
    const unsigned second = PoolNumbers::take();
    const unsigned third = PoolNumbers::take();
    EXPECT_NE(first, PoolNumbers::global);
    EXPECT_LT(first, second);
    EXPECT_LT(second, third);
    PoolNumbers::give_back(second);
    PoolNumbers::give_back(first);
    EXPECT_EQ(PoolNumbers::take(), first);
    EXPECT_EQ(PoolNumbers::take(), second);
    for (const unsigned number : {first, second, third}) PoolNumbers::give_back(number);
}

TEST(PoolNumbers, EachIsTakenOnceUntilNoneIsLeft) {
    std::set<unsigned> numbers;
    for (unsigned number = PoolNumbers::take(); number != PoolNumbers::none;
         number = PoolNumbers::take()) {
        ASSERT_TRUE(numbers.insert(number).second);
        ASSERT_LT(number, PoolNumbers::end);
    }
    EXPECT_EQ(*numbers.begin(), PoolNumbers::first) << "smaller numbers are reserved";
    EXPECT_EQ(numbers.size(), PoolNumbers::end - PoolNumbers::first);
    const unsigned last = *numbers.rbegin();
    PoolNumbers::give_back(last);
    EXPECT_EQ(PoolNumbers::take(), last);
    for (const unsigned number : numbers) PoolNumbers::give_back(number);
}

}  // namespace
}  // namespace tensorpool::blocks
