#include <tensorpool/detail/saturating.hpp>

#include <gtest/gtest.h>

namespace tensorpool::detail {
namespace {

TEST(Saturating, SumsAndProductsStopAtTheLargestNumber) {
    EXPECT_EQ(sum(1, 2, 3), 6U);
    EXPECT_EQ(sum(max_number, 1), max_number);
    EXPECT_EQ(sum(max_number - 1, 1), max_number);
    EXPECT_EQ(sum(1, max_number, 1), max_number);
    EXPECT_EQ(product(2, 3, 4), 24U);
    EXPECT_EQ(product(0, max_number), 0U);
    EXPECT_EQ(product(max_number, 0), 0U);
    EXPECT_EQ(product(std::uint64_t{1} << 32, std::uint64_t{1} << 32), max_number);
    EXPECT_EQ(product(std::uint64_t{1} << 32, std::uint64_t{1} << 31), std::uint64_t{1} << 63);
}

TEST(Saturating, RoundsUpToMultiples) {
    EXPECT_EQ(round_up(0, 256), 0U);
    EXPECT_EQ(round_up(1, 256), 256U);
    EXPECT_EQ(round_up(256, 256), 256U);
    EXPECT_EQ(round_up(max_number - 1, 256), max_number);
}

}  // namespace
}  // namespace tensorpool::detail
