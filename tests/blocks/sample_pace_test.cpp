#include "blocks/sample_pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorpool::blocks {
namespace {

constexpr double share = 0.01;
constexpr double haste = 4;
constexpr std::uint64_t second_ns = 1'000'000'000;

/// A thread that works for `work_ns` before each request for `bytes` bytes.
struct Requests {
    std::int64_t bytes;
    std::uint64_t work_ns;
    std::uint64_t sample_cost_ns;
};

struct Outcome {
    std::uint64_t samples = 0;
    std::uint64_t cost_ns = 0;  // of the samples, and of their frees
    std::uint64_t time_ns = 0;

    double share_spent() const {
        return static_cast<double>(cost_ns) / static_cast<double>(time_ns);
    }
};

// Samples as Pool::sample does.
Outcome run(const Requests& requests, std::uint64_t duration_ns) {
    Outcome result;
    SamplePace pace;
    std::uint64_t now = second_ns;
    std::int64_t left = pace.begin(now, 12345);
    while (now < second_ns + duration_ns) {
        now += requests.work_ns;
        left -= requests.bytes;
        if (left >= 0) continue;
        if (pace.is_due(now, requests.sample_cost_ns, haste * share)) {
            now += requests.sample_cost_ns;
            pace.count(now, requests.sample_cost_ns);
            ++result.samples;
            result.cost_ns += 2 * requests.sample_cost_ns;
        }
        left = pace.next(now, left, share);
    }
    result.time_ns = now - second_ns;
    return result;
}

TEST(SamplePace, SpendsTheShareOnSmallBlocks) {
    const Outcome small =
        run({.bytes = 1000, .work_ns = 300, .sample_cost_ns = 15'000}, 10 * second_ns);
    EXPECT_GT(small.share_spent(), 0.8 * share);
    EXPECT_LT(small.share_spent(), 1.2 * share);
}

// Each is larger than the distance, so each request asks for a sample.
TEST(SamplePace, SpendsNoMoreOnLargeBlocksWhosePagesCostMore) {
    const Outcome large =
        run({.bytes = 8 << 20, .work_ns = 2'000'000, .sample_cost_ns = 4'000'000}, 100 * second_ns);
    EXPECT_GT(large.samples, 10U);
    EXPECT_LT(large.share_spent(), 1.2 * share);
}

TEST(SamplePace, TakesNoCostlySampleSoonAfterAnother) {
    SamplePace pace;
    (void)pace.begin(second_ns, 1);
    pace.count(second_ns, 15'000);
    constexpr std::uint64_t cost_ns = 4'000'000;
    EXPECT_FALSE(pace.is_due(second_ns + cost_ns, cost_ns, share));
    EXPECT_TRUE(pace.is_due(second_ns + 100 * cost_ns, cost_ns, share));
    EXPECT_TRUE(pace.is_due(second_ns + cost_ns, 0, share));
}

}  // namespace
}  // namespace tensorpool::blocks
