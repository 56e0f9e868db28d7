#include "model/saturating.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::model {
namespace {

TEST(Saturating, SumsAndProductsStopAtTheLargestNumber) {
    EXPECT_EQ(sum(1, 2, 3), 6U);
    EXPECT_EQ(sum(endless, 1), endless);
    EXPECT_EQ(sum(endless - 1, 1), endless);
    EXPECT_EQ(sum(1, endless, 1), endless);
    EXPECT_EQ(product(2, 3, 4), 24U);
    EXPECT_EQ(product(0, endless), 0U);
    EXPECT_EQ(product(endless, 0), 0U);
    EXPECT_EQ(product(std::uint64_t{1} << 32, std::uint64_t{1} << 32), endless);
    EXPECT_EQ(product(std::uint64_t{1} << 32, std::uint64_t{1} << 31), std::uint64_t{1} << 63);
}

TEST(Saturating, RoundsUpToMultiples) {
    EXPECT_EQ(round_up(0, 256), 0U);
    EXPECT_EQ(round_up(1, 256), 256U);
    EXPECT_EQ(round_up(256, 256), 256U);
    EXPECT_EQ(round_up(endless - 1, 256), endless);
}

}  // namespace
}  // namespace tensorpool::command::model
