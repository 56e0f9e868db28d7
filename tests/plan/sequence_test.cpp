#include "plan/learned_plan.hpp"

#include <gtest/gtest.h>

#include "plan/plans.hpp"

namespace tensorpool::planned {
namespace {

using testing::request_of;
using Requests = std::vector<Request>;

TEST(Sequence, SameRequestsIgnoresLifetimes) {
    EXPECT_TRUE(same_requests(Requests{request_of(1, 1)}, Requests{request_of(1, 7)}));
    EXPECT_FALSE(same_requests(Requests{request_of(1, 1)}, Requests{request_of(2, 1)}));
    EXPECT_FALSE(same_requests(Requests{request_of(1, 1)}, Requests{request_of(1, 1, 128)}));
    EXPECT_FALSE(same_requests(Requests{request_of(1, 1)}, Requests{}));
}

TEST(Sequence, ChecksumDependsOnSizesAlignmentsAndOrder) {
    const Requests requests = {request_of(1, 1), request_of(2, 2)};
    EXPECT_EQ(checksum_of(requests), checksum_of(Requests{request_of(1, 2), request_of(2, 3)}));
    EXPECT_NE(checksum_of(requests), checksum_of(Requests{request_of(2, 1), request_of(1, 2)}));
    EXPECT_NE(checksum_of(requests), checksum_of(Requests{request_of(1, 1), request_of(3, 2)}));
    EXPECT_NE(checksum_of(requests),
              checksum_of(Requests{request_of(1, 1), request_of(2, 2, 128)}));
}

TEST(Sequence, ChecksumIgnoresLifetimes) {
    EXPECT_EQ(checksum_of({}), 0u);
    EXPECT_EQ(checksum_of(Requests{request_of(1, 1)}), checksum_of(Requests{request_of(1, 9)}));
}

TEST(Sequence, LifetimesAreOfPlannedRequestsOnly) {
    const std::vector<TensorLifetime> lifetimes = lifetimes_of(testing::small_plan().requests);
    ASSERT_EQ(lifetimes.size(), 4);
    EXPECT_EQ(lifetimes[3], (TensorLifetime{.begin = 3, .end = 4, .bytes = 128, .alignment = 64}));
}

TEST(Sequence, PoolPeakIsTheMaximumOfPoolBlocksAtOnce) {
    EXPECT_EQ(pool_peak_of(Requests{request_of(1, 1), request_of(2, 3), request_of(3, 3)}),
              5 * 128);
    EXPECT_EQ(pool_peak_of(Requests{request_of(9, Request::outlives), request_of(1, 2)}), 128);
    EXPECT_EQ(pool_peak_of({}), 0);
}

}  // namespace
}  // namespace tensorpool::planned
