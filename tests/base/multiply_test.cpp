#include "base/alignment.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tensorpool::base {
namespace {

constexpr std::size_t half = std::size_t{1} << 32;

TEST(Multiply, StoresProductThatFits) {
    std::size_t product = 7;
    EXPECT_TRUE(multiply(6, 7, product));
    EXPECT_EQ(product, 42U);
    EXPECT_TRUE(multiply(SIZE_MAX, 1, product));
    EXPECT_EQ(product, SIZE_MAX);
    EXPECT_TRUE(multiply(1, SIZE_MAX, product));
    EXPECT_EQ(product, SIZE_MAX);
    EXPECT_TRUE(multiply(half, half - 1, product));
    EXPECT_EQ(product, SIZE_MAX - half + 1);
}

TEST(Multiply, ZeroTimesAnythingIsZero) {
    std::size_t product = 7;
    EXPECT_TRUE(multiply(0, SIZE_MAX, product));
    EXPECT_EQ(product, 0U);
    product = 7;
    EXPECT_TRUE(multiply(SIZE_MAX, 0, product));
    EXPECT_EQ(product, 0U);
}

TEST(Multiply, OverflowLeavesProductUnchanged) {
    std::size_t product = 7;
    EXPECT_FALSE(multiply(half, half, product));
    EXPECT_FALSE(multiply(SIZE_MAX, 2, product));
    EXPECT_FALSE(multiply(2, SIZE_MAX, product));
    EXPECT_FALSE(multiply(SIZE_MAX / 3 + 1, 3, product));
    EXPECT_EQ(product, 7U);
}

static_assert([] {
    std::size_t product = 0;
    return multiply(3, 5, product) && product == 15;
}());

}  // namespace
}  // namespace tensorpool::base
