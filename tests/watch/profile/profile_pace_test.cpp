#include "watch/profile/profile_pace.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace tensorpool::watch {
namespace {

constexpr std::uint64_t interval = 512 << 10;

/// A thread that requests blocks of `bytes` bytes, each after `work_ns` of work, on a clock of its
/// own.
class Thread {
public:
    Thread(std::int64_t bytes, std::uint64_t work_ns, std::uint64_t cost_ns)
        : bytes_(bytes), work_ns_(work_ns), cost_ns_(cost_ns) {
        left_ = pace_.begin(12345, interval);
    }
    void request(int times) {
        for (int i = 0; i < times; ++i) {
            now_ += work_ns_;
            work_ += static_cast<double>(work_ns_);
            left_ -= bytes_;
            if (left_ < 0) sample();
        }
    }
    void set_work(std::uint64_t ns) { work_ns_ = ns; }

    int samples() const { return samples_; }
    double mean() const { return pace_.mean(); }
    /// The share of the time that samples took, apart from what a thread may spend at once.
    double share() const { return (samples_ * static_cast<double>(cost_ns_) - 1e6) / work_; }
    /// What all requests amount to, by the weights of the samples.
    double estimated_bytes() const { return estimated_; }
    double error() const { return std::sqrt(variance_); }

private:
    void sample() {
        const double bytes = static_cast<double>(bytes_);
        const double probability = -std::expm1(-bytes / pace_.mean());
        estimated_ += bytes / probability;
        variance_ += bytes * bytes * (1 - probability) / probability / probability;
        left_ = pace_.next(now_, left_, interval);
        pace_.count(cost_ns_);
        now_ += cost_ns_;
        ++samples_;
    }

    ProfilePace pace_;
    std::int64_t left_ = 0;
    std::int64_t bytes_;
    std::uint64_t work_ns_;
    std::uint64_t cost_ns_;
    std::uint64_t now_ = 1;
    double work_ = 0;
    int samples_ = 0;
    double estimated_ = 0;
    double variance_ = 0;
};

TEST(ProfilePace, KeepsTheIntervalWhileSamplesAreCheap) {
    Thread thread(1000, 10'000, 5000);
    thread.request(1'000'000);
    EXPECT_EQ(thread.mean(), static_cast<double>(interval));
    EXPECT_NEAR(thread.estimated_bytes(), 1e9, 5 * thread.error());
}

TEST(ProfilePace, RaisesTheMeanWhereSamplesWouldTakeMoreThanTheShare) {
    for (const std::int64_t bytes : {64, 4096, 1 << 20}) {
        Thread thread(bytes, 100, 5000);
        thread.request(20'000'000);
        EXPECT_GT(thread.samples(), 100) << bytes;
        EXPECT_LT(thread.share(), 1.3 * ProfilePace::share) << bytes;
        EXPECT_NEAR(thread.estimated_bytes(), 20e6 * static_cast<double>(bytes), 5 * thread.error())
            << bytes;
    }
}

TEST(ProfilePace, BeginsWithSavedTime) {
    Thread thread(1 << 20, 100, 1000);
    thread.request(400);
    EXPECT_EQ(thread.mean(), static_cast<double>(interval));
    EXPECT_GT(thread.samples(), 300);
    thread.request(2000);
    EXPECT_GT(thread.mean(), static_cast<double>(interval));
}

TEST(ProfilePace, SavesTimeWhileTheThreadAllocatesLittle) {
    Thread thread(1 << 20, 100, 1000);
    thread.request(10'000);
    thread.set_work(1'000'000);
    thread.request(10'000);
    thread.set_work(100);
    const int before = thread.samples();
    thread.request(3000);
    EXPECT_GT(thread.samples() - before, 2000);
}

TEST(ProfilePace, ReturnsToTheIntervalWhenTheThreadAllocatesLess) {
    Thread thread(4096, 100, 5000);
    thread.request(10'000'000);
    EXPECT_GT(thread.mean(), 10.0 * interval);
    thread.set_work(1'000'000);
    thread.request(1'000'000);
    EXPECT_EQ(thread.mean(), static_cast<double>(interval));
}

TEST(ProfilePace, SamplesEveryAllocationIfAsked) {
    ProfilePace pace;
    std::int64_t left = pace.begin(1, ProfilePace::every_allocation);
    int sampled = 0;
    for (int i = 0; i < 1000; ++i) {
        left -= 64;
        if (left >= 0) continue;
        left = pace.next(1, left, ProfilePace::every_allocation);
        pace.count(1'000'000);
        ++sampled;
    }
    EXPECT_EQ(sampled, 1000);
}

TEST(ProfilePace, BeginsAgainAfterAStop) {
    ProfilePace pace;
    EXPECT_FALSE(pace.is_on());
    (void)pace.begin(1, interval);
    EXPECT_TRUE(pace.is_on());
    pace.stop();
    EXPECT_FALSE(pace.is_on());
    EXPECT_GT(pace.begin(2, interval), 0);
}

TEST(SampleDistances, CountsDownBothFromTheSmallerOne) {
    SampleDistances distances{.to_guard = 100, .to_sample = 30};
    std::int64_t countdown = distances.arm();
    EXPECT_EQ(countdown, 30);
    countdown -= 50;
    distances.settle(countdown);
    EXPECT_EQ(distances.to_guard, 50);
    EXPECT_EQ(distances.to_sample, -20);
    distances.to_sample = SampleDistances::never;
    EXPECT_EQ(distances.arm(), 50);
}

}  // namespace
}  // namespace tensorpool::watch
