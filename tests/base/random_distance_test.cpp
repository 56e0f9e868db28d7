#include "base/random_distance.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tensorpool::base {
namespace {

// The bounds are 5 standard deviations.
TEST(RandomDistance, HasTheGivenMean) {
    RandomDistance random(1);
    double sum = 0;
    for (int i = 0; i < 100'000; ++i) sum += static_cast<double>(random.next(1000));
    EXPECT_NEAR(sum / 100'000, 1000, 5 * 1000 / std::sqrt(100'000));
}

TEST(RandomDistance, IsExponentiallyDistributed) {
    RandomDistance random(2);
    int below_half = 0;
    for (int i = 0; i < 100'000; ++i) below_half += random.next(1'000'000) < 693'147 ? 1 : 0;
    EXPECT_NEAR(below_half, 50'000, 5 * std::sqrt(25'000));
}

TEST(RandomDistance, LeavesRoomForAnyRequest) {
    RandomDistance random(3);
    for (int i = 0; i < 1000; ++i) {
        EXPECT_EQ(random.next(0), 0);
        EXPECT_LE(random.next(0x1p70), std::int64_t{1} << 60);
    }
}

TEST(RandomDistance, SeedsDiffer) {
    EXPECT_NE(RandomDistance(1).next(0x1p40), RandomDistance(2).next(0x1p40));
}

}  // namespace
}  // namespace tensorpool::base
