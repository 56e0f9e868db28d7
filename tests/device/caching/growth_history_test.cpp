#include "device/caching/stream_cache.hpp"

#include <gtest/gtest.h>

#include <random>

namespace tensorpool::device {
namespace {

TEST(GrowthHistory, DetectsAPeriodAfterItsSecondRound) {
    GrowthHistory history;
    const std::size_t period[] = {512, 1024, 4096, 1024, 2048};
    for (int round = 0; round < 5; ++round) {
        for (const std::size_t bytes : period) {
            const bool repeats = history.repeats(bytes);
            if (round == 0) {
                EXPECT_FALSE(repeats);
            }
            if (round >= 2) {
                EXPECT_TRUE(repeats);
            }
        }
    }
}

TEST(GrowthHistory, DetectsOneRepeatedRequest) {
    GrowthHistory history;
    for (int i = 0; i < 4; ++i) EXPECT_FALSE(history.repeats(512));
    EXPECT_TRUE(history.repeats(512));
}

TEST(GrowthHistory, DetectsNoRepetitionInRandomSizes) {
    GrowthHistory history;
    std::mt19937 random(1);
    int repetitions = 0;
    for (int i = 0; i < 10'000; ++i) repetitions += history.repeats(random() % 512 * 512) ? 1 : 0;
    EXPECT_LE(repetitions, 2);
}

}  // namespace
}  // namespace tensorpool::device
