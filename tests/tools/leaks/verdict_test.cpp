#include "leaks/observation.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace tensorpool::command::leaks {
namespace {

/// A site without noise that holds these bytes.
Judgement judge_live(std::vector<double> live) {
    History history;
    history.allocated = std::vector<double>(live.size());
    std::partial_sum(live.begin(), live.end(), history.allocated.begin());
    history.live = std::move(live);
    return judge(history, 1);
}

/// Returns the values of `function` for 0 to 20.
std::vector<double> live_of(double (*function)(double)) {
    std::vector<double> live;
    for (int i = 0; i <= 20; ++i) live.push_back(function(i));
    return live;
}

TEST(Verdict, GrowthInProportionIsALeak) {
    const Judgement judged = judge_live(live_of([](double i) { return 1000 + 100 * i; }));
    EXPECT_EQ(judged.verdict, Verdict::leak);
    EXPECT_EQ(judged.growth, 2000);
    EXPECT_EQ(judged.uncertainty, 0);
    EXPECT_EQ(judged.oldest, 1U);
    EXPECT_EQ(judged.median, 10U);
}

TEST(Verdict, GrowthThatSlowsDownIsACache) {
    const auto live = live_of([](double i) { return 1000 * (1 - std::exp(-i / 5)); });
    EXPECT_EQ(judge_live(live).verdict, Verdict::cache);
}

TEST(Verdict, GrowthAtTheBeginningIsAWarmUp) {
    const Judgement judged =
        judge_live(live_of([](double i) { return 100 * std::min(i, 3.0) + i; }));
    EXPECT_EQ(judged.verdict, Verdict::warm_up);
    EXPECT_EQ(judged.median, 2U);
}

TEST(Verdict, GrowthThatBeganLateIsTooLittleToTell) {
    const Judgement judged =
        judge_live(live_of([](double i) { return 100 * std::max(i - 8, 0.0); }));
    EXPECT_EQ(judged.verdict, Verdict::too_little);
    EXPECT_EQ(judged.oldest, 9U);
}

TEST(Verdict, FewLargeStepsAreTooLittleToTell) {
    const auto doubling = live_of([](double i) { return std::exp2(std::ceil(std::log2(i + 1))); });
    EXPECT_EQ(judge_live(doubling).verdict, Verdict::too_little);
}

TEST(Verdict, ABlockThatWasBeingReplacedDoesNotHideALeak) {
    auto live = live_of([](double i) { return 100 * i; });
    for (const std::size_t i : {3U, 8U, 11U, 13U}) live[i] *= 2;
    EXPECT_EQ(judge_live(live).verdict, Verdict::leak);
}

TEST(Verdict, MemoryFreedOnceIsTooLittleToTell) {
    EXPECT_EQ(judge_live(live_of([](double i) { return i < 8 ? 400 * i : 100 * i; })).verdict,
              Verdict::too_little);
}

TEST(Verdict, FewIterationsAreTooLittleToTell) {
    EXPECT_EQ(judge_live({0, 100, 200, 300, 400, 500, 600, 700, 800, 900}).verdict,
              Verdict::too_little);
}

TEST(Verdict, GrowthBelow16SamplingMeansIsTooLittleToTell) {
    EXPECT_EQ(judge_live(live_of([](double i) { return i * 15.9 / 20; })).verdict,
              Verdict::too_little);
    EXPECT_EQ(judge_live(live_of([](double i) { return i * 16.1 / 20; })).verdict, Verdict::leak);
}

TEST(Verdict, SitesThatDoNotGrowAreSteady) {
    EXPECT_EQ(judge_live({}).verdict, Verdict::steady);
    EXPECT_EQ(judge_live({100}).verdict, Verdict::steady);
    EXPECT_EQ(judge_live(live_of([](double) { return 1000.0; })).verdict, Verdict::steady);
    EXPECT_EQ(judge_live(live_of([](double i) { return 5000 - i; })).verdict, Verdict::steady);
    EXPECT_EQ(judge_live(live_of([](double i) { return i == 20 ? 1000.0 : 0.0; })).verdict,
              Verdict::steady);
}

TEST(Verdict, UncertaintyCountsOnlyBlocksThatChanged) {
    History history{.live = {10'000, 10'100}, .allocated = {50'000, 50'100}, .noise_mean = 4};
    EXPECT_EQ(judge(history, 1).uncertainty, 20);
    history.allocated = {50'000, 1'050'000};  // all blocks may have been replaced
    EXPECT_DOUBLE_EQ(judge(history, 1).uncertainty, std::sqrt(4 * 20'100));
}

TEST(NoiseMean, IsTheSamplingMeanForSmallBlocksAndNoneForLargeOnes) {
    EXPECT_NEAR(noise_mean_of(1000 * 512, 1e9, 1000), 512, 0.01);
    EXPECT_EQ(noise_mean_of(1e9, 10, 10), 0);
    EXPECT_EQ(noise_mean_of(0, 0, 0), 0);
    EXPECT_EQ(noise_mean_of(1, std::numeric_limits<double>::quiet_NaN(), 1), 0);
    EXPECT_EQ(noise_mean_of(1, -5, 1), 0);
}

}  // namespace
}  // namespace tensorpool::command::leaks
