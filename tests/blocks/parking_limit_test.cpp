#include "blocks/bucket_set.hpp"

#include <gtest/gtest.h>

#include <cstddef>

namespace tensorpool::blocks {
namespace {

constexpr std::size_t per_processor = 1000;
constexpr std::size_t per_thread = 100;

TEST(ParkingLimit, GrantsNoMoreThanTheLimit) {
    ParkingLimit limit(per_processor, per_thread);
    const std::size_t max_bytes = limit.max_bytes();
    EXPECT_GE(max_bytes, per_processor);
    EXPECT_TRUE(limit.take(max_bytes - 1));
    EXPECT_FALSE(limit.take(2));
    EXPECT_TRUE(limit.take(1));
    EXPECT_FALSE(limit.take(1));
    limit.give_back(10);
    EXPECT_TRUE(limit.take(10));
    EXPECT_EQ(limit.taken(), max_bytes);
}

TEST(ParkingLimit, EachThreadRaisesTheLimit) {
    ParkingLimit limit(per_processor, per_thread);
    EXPECT_TRUE(limit.take(limit.max_bytes()));
    limit.add_thread();
    EXPECT_TRUE(limit.take(per_thread));
    limit.remove_thread();
    EXPECT_FALSE(limit.take(1)) << "room that was taken stays taken";
    limit.begin_again(0);
    EXPECT_TRUE(limit.take(limit.max_bytes()));
}

}  // namespace
}  // namespace tensorpool::blocks
