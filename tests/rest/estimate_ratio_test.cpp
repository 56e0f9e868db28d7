#include "rest/stash_state.hpp"

#include <gtest/gtest.h>

#include "rest/test_content.hpp"

namespace tensorpool::stashing {
namespace {

TEST(EstimateRatio, IsNearWhatEncodingYields) {
    MemoryPool pool;
    Generator generator(1);
    EXPECT_EQ(estimate_ratio({}, {}, pool), 0);
    EXPECT_LT(estimate_ratio(Bytes(1 << 20), {}, pool), 0.002);
    EXPECT_LT(estimate_ratio(Bytes(65'537), {}, pool), 0.002);
    Bytes random(1'000'000);
    for (std::byte& byte : random) byte = static_cast<std::byte>(generator());
    EXPECT_NEAR(estimate_ratio(random, {}, pool), 1, 0.01);
    // The first half is random, the second is zero.
    std::fill(random.begin() + 500'000, random.end(), std::byte{0});
    EXPECT_NEAR(estimate_ratio(random, {}, pool), 0.5, 0.1);
    EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool::stashing
