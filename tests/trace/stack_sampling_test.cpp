#include "trace/ring_writer.hpp"

#include <gtest/gtest.h>

namespace tensorpool::trace {
namespace {

TEST(SampleDistance, IntervalOfZeroSamplesNothing) {
    SampleDistance sampling;
    sampling.begin(0, 1);
    for (int i = 0; i < 1000; ++i) EXPECT_FALSE(sampling.takes(std::uint64_t{1} << 40));
}

TEST(SampleDistance, SamplesAboutOncePerInterval) {
    SampleDistance sampling;
    sampling.begin(1000, 1);
    int taken = 0;
    for (int i = 0; i < 100'000; ++i) taken += sampling.takes(10) ? 1 : 0;
    // With 10 bytes of 1000: 1 in 100.5; the bounds are 5 standard deviations from 1000.
    EXPECT_GT(taken, 840);
    EXPECT_LT(taken, 1160);
}

TEST(SampleDistance, HugeIntervalSamplesNothing) {
    for (std::uint64_t seed = 0; seed < 100; ++seed) {
        SampleDistance sampling;
        sampling.begin(UINT64_MAX, seed);
        for (int i = 0; i < 10; ++i) EXPECT_FALSE(sampling.takes(1)) << seed;
    }
}

}  // namespace
}  // namespace tensorpool::trace
