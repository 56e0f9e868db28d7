#include "statistics/segment/owned_record.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace tensorpool::statistics {
namespace {

using detail::Counter;

TEST(FoldedWords, AddsGrowthSinceLastFold) {
    FoldedWords<2> folded;
    Counter own[2] = {5, 0};
    Counter sums[2] = {100, 100};
    folded.fold(own, sums);
    folded.fold(own, sums);
    EXPECT_EQ(sums[0], 105U);
    EXPECT_EQ(sums[1], 100U);
    own[0] = 7;
    own[1] = 1;
    folded.fold(own, sums);
    EXPECT_EQ(sums[0], 107U);
    EXPECT_EQ(sums[1], 101U);
}

TEST(FoldedWords, SubtractsLoss) {
    FoldedWords<1> folded;
    Counter own[1] = {5};
    Counter sums[1] = {10};
    folded.fold(own, sums);
    own[0] = 2;
    folded.fold(own, sums);
    EXPECT_EQ(sums[0], 12U);
}

TEST(FoldedWords, UnfoldKeepsValuesOfOthers) {
    FoldedWords<1> one;
    FoldedWords<1> other;
    Counter first[1] = {5};
    Counter second[1] = {70};
    Counter sums[1] = {};
    one.fold(first, sums);
    other.fold(second, sums);
    first[0] = 6;  // not folded
    one.unfold(sums);
    EXPECT_EQ(sums[0], 70U);
    one.unfold(sums);
    EXPECT_EQ(sums[0], 70U) << "nothing is subtracted twice";
    one.fold(first, sums);
    EXPECT_EQ(sums[0], 76U) << "it may be folded again";
}

TEST(FoldedWords, ThreadsMayFoldIntoSameCounters) {
    Counter sums[2] = {};
    const auto count = [&sums] {
        FoldedWords<2> folded;
        Counter own[2] = {};
        for (std::uint64_t i = 1; i <= 10'000; ++i) {
            own[0] = i;
            own[1] = 2 * i;
            folded.fold(own, sums);
        }
    };
    std::thread other(count);
    count();
    other.join();
    EXPECT_EQ(sums[0], 20'000U);
    EXPECT_EQ(sums[1], 40'000U);
}

TEST(FoldedWords, RecordIsViewedAsCounters) {
    EXPECT_EQ(words_of<detail::BucketCounters>, 8U);
    detail::BucketCounters record{};
    record.system_misses = 3;
    EXPECT_EQ(as_words(record)[7], 3U);
    as_words(record)[0] = 4;
    EXPECT_EQ(record.allocations, 4U);
}

}  // namespace
}  // namespace tensorpool::statistics
