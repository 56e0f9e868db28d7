#include "serve/watch/history.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tensorpool::command::serve {
namespace {

constexpr float unknown = std::numeric_limits<float>::quiet_NaN();

/// Adds one sample per second, with the second as its value.
MetricHistory<1> seconds(std::uint32_t count) {
    MetricHistory<1> history;
    for (std::uint32_t i = 0; i < count; ++i) history.add({i * 100, {static_cast<float>(i)}});
    return history;
}

TEST(MetricHistory, IsEmptyBeforeTheFirstSample) {
    EXPECT_TRUE(MetricHistory<1>().samples().empty());
}

TEST(MetricHistory, KeepsEverySampleOfTwoMinutes) {
    const auto samples = seconds(121).samples();
    ASSERT_EQ(samples.size(), 121u);
    for (std::uint32_t i = 0; i < 121; ++i) EXPECT_EQ(samples[i].time, i * 100);
}

TEST(MetricHistory, KeepsTheMeanOfFiveSecondsBeforeThat) {
    const auto samples = seconds(121 + 10).samples();
    ASSERT_EQ(samples.size(), 2u + 121u);
    EXPECT_EQ(samples[0].time, 0u);
    EXPECT_FLOAT_EQ(samples[0].values[0], 2);  // of 0 to 4
    EXPECT_EQ(samples[1].time, 500u);
    EXPECT_FLOAT_EQ(samples[1].values[0], 7);
    EXPECT_EQ(samples[2].time, 1000u);
}

TEST(MetricHistory, DropsSamplesOlderThanTenMinutes) {
    const auto samples = seconds(3600).samples();
    EXPECT_GE(samples.front().time, (3599u - 600u) * 100);
    EXPECT_LE(samples.front().time, (3599u - 590u) * 100);
    EXPECT_EQ(samples.back().time, 359900u);
    EXPECT_LE(samples.size(), 121u + 97u);
}

TEST(MetricHistory, StaysInOrderWithIrregularSamples) {
    MetricHistory<1> history;
    for (const std::uint32_t time : {0u, 100u, 100u, 9000u, 50000u, 50100u, 70000u}) {
        history.add({time, {1}});
    }
    const auto samples = history.samples();
    for (std::size_t i = 1; i < samples.size(); ++i) {
        EXPECT_LE(samples[i - 1].time, samples[i].time);
    }
    EXPECT_EQ(samples.back().time, 70000u);
}

TEST(MetricHistory, TakesTheMeanOfKnownValues) {
    MetricHistory<2> history;
    history.add({0, {unknown, unknown}});
    history.add({100, {4, unknown}});
    history.add({200, {unknown, unknown}});
    history.add({30000, {0, 0}});
    const auto samples = history.samples();
    EXPECT_FLOAT_EQ(samples.front().values[0], 4);
    EXPECT_TRUE(std::isnan(samples.front().values[1]));
}

TEST(MetricHistory, KeepsSumsOfValuesWhenThinning) {
    MetricHistory<3> history;
    for (std::uint32_t i = 0; i < 300; ++i) {
        const auto a = static_cast<float>(i % 7);
        const auto b = static_cast<float>(i % 11);
        history.add({i * 100, {a, b, a + b}});
    }
    for (const auto& sample : history.samples()) {
        EXPECT_NEAR(sample.values[0] + sample.values[1], sample.values[2], 1e-4);
    }
}

}  // namespace
}  // namespace tensorpool::command::serve
