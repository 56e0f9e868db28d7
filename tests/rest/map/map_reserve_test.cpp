#include "rest/map/entry_table.hpp"

#include <gtest/gtest.h>

namespace tensorpool::stashing {
namespace {

constexpr std::size_t MiB = std::size_t{1} << 20;

class MapReserveTest : public ::testing::Test {
protected:
    std::size_t in_use() const { return pool_.statistics().in_use_bytes; }

    MemoryPool pool_{PoolOptions{.name = "tensors", .max_capacity = 16 * MiB}};
    MapReserve reserve_;
};

TEST_F(MapReserveTest, IsNothingUntilItHasASize) {
    EXPECT_EQ(reserve_.refill(pool_, PooledAllocation(pool_, MiB)), 0U);
    EXPECT_EQ(in_use(), 0U);
    EXPECT_EQ(reserve_.free(), 0U);
}

TEST_F(MapReserveTest, KeepsABlockOfItsSizeOrMakesOne) {
    reserve_.grow_to(2 * MiB);
    reserve_.grow_to(MiB);
    PooledAllocation fitting(pool_, 3 * MiB);
    const void* const address = fitting.get();
    EXPECT_EQ(reserve_.refill(pool_, std::move(fitting)), 3 * MiB);
    EXPECT_TRUE(pool_.owns(address));
    EXPECT_EQ(in_use(), 3 * MiB);
    EXPECT_EQ(reserve_.free(), 3 * MiB);
    EXPECT_EQ(in_use(), 0U);

    EXPECT_EQ(reserve_.refill(pool_, PooledAllocation(pool_, 8 * MiB)), 2 * MiB);
    EXPECT_EQ(in_use(), 2 * MiB);
    EXPECT_EQ(reserve_.refill(pool_, PooledAllocation(pool_, 2 * MiB)), 0U);
    EXPECT_EQ(in_use(), 2 * MiB);
}

TEST_F(MapReserveTest, IsNothingIfThereIsNoMemory) {
    reserve_.grow_to(32 * MiB);
    EXPECT_EQ(reserve_.refill(pool_, {}), 0U);
    EXPECT_EQ(reserve_.free(), 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
