#include "pool/pool.hpp"

#include <gtest/gtest.h>

namespace tensorpool::detail {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(OfferPace, IsDueAfterFourMebibytes) {
    OfferPace pace;
    EXPECT_FALSE(pace.is_due(4 * mib - 1, 0));
    EXPECT_TRUE(pace.is_due(4 * mib, 0));
}

TEST(OfferPace, IsDueAfterAnEighth) {
    OfferPace pace;
    pace.begin_again(700 * mib);
    EXPECT_FALSE(pace.is_due(750 * mib, 0));
    EXPECT_TRUE(pace.is_due(800 * mib, 0));
    pace.begin_again(800 * mib);
    EXPECT_FALSE(pace.is_due(800 * mib, 0));
}

TEST(OfferPace, CountsFromTheLowestBytesSinceTheLastLook) {
    OfferPace pace;
    pace.begin_again(100 * mib);
    EXPECT_FALSE(pace.is_due(10 * mib, 0));
    EXPECT_FALSE(pace.is_due(13 * mib, 0));
    EXPECT_TRUE(pace.is_due(14 * mib, 0));
}

TEST(OfferPace, IsNotDueBelowASixtyFourthOfTheMemory) {
    OfferPace pace;
    EXPECT_FALSE(pace.is_due(99 * mib, 6400 * mib));
    EXPECT_TRUE(pace.is_due(100 * mib, 6400 * mib));
    EXPECT_FALSE(pace.is_due(100 * mib, SIZE_MAX)) << "no limit is known";
}

}  // namespace
}  // namespace tensorpool::detail
