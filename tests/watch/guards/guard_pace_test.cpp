#include "watch/guards/guard_pace.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorpool::watch {
namespace {

constexpr double share = 0.01;
constexpr double haste = 4;
constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t hour_ns = 3600 * second_ns;

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
    GuardPace pace;
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

TEST(GuardPace, SpendsTheShareOnSmallBlocks) {
    const Outcome small =
        run({.bytes = 1000, .work_ns = 300, .sample_cost_ns = 15'000}, 10 * second_ns);
    EXPECT_GT(small.share_spent(), 0.8 * share);
    EXPECT_LT(small.share_spent(), 1.2 * share);
}

// Each is larger than the distance, so each request asks for a sample.
TEST(GuardPace, SpendsNoMoreOnLargeBlocksWhosePagesCostMore) {
    const Outcome large =
        run({.bytes = 8 << 20, .work_ns = 2'000'000, .sample_cost_ns = 4'000'000}, 100 * second_ns);
    EXPECT_GT(large.samples, 10U);
    EXPECT_LT(large.share_spent(), 1.2 * share);
}

TEST(GuardPace, TakesNoCostlySampleSoonAfterAnother) {
    GuardPace pace;
    (void)pace.begin(second_ns, 1);
    pace.count(second_ns, 15'000);
    constexpr std::uint64_t cost_ns = 4'000'000;
    EXPECT_FALSE(pace.is_due(second_ns + cost_ns, cost_ns, share));
    EXPECT_TRUE(pace.is_due(second_ns + 100 * cost_ns, cost_ns, share));
    EXPECT_TRUE(pace.is_due(second_ns + cost_ns, 0, share));
}

/// A thread that requests 1,000 bytes each microsecond. Every sample costs the same.
class SteadyThread {
public:
    SteadyThread() { left_ = pace_.begin(now_, 12345); }
    /// Returns the samples of this many microseconds.
    unsigned run(unsigned microseconds) {
        unsigned samples = 0;
        for (unsigned i = 0; i < microseconds; ++i) {
            now_ += 1000;
            left_ -= 1000;
            if (left_ >= 0) continue;
            const bool is_due = pace_.is_due(now_, 0, haste * share);
            if (is_due) pace_.count(now_, 20'000);
            samples += is_due ? 1 : 0;
            left_ = pace_.next(now_, left_, share);
        }
        return samples;
    }
    void set_clock(std::uint64_t now) { now_ = now; }
    std::uint64_t now() const { return now_; }

private:
    GuardPace pace_;
    std::uint64_t now_ = 1'000'000'000;
    std::int64_t left_ = 0;
};

// A sample and its free cost 40 µs, so one in 4 ms takes a hundredth of the time.
constexpr unsigned run_length = 400'000;
void expect_pace(unsigned samples) {
    EXPECT_GE(samples, 50U);
    EXPECT_LE(samples, 200U);
}

TEST(GuardPace, PaceReturnsAfterTheClockHasJumped) {
    SteadyThread thread;
    thread.run(run_length);
    const std::uint64_t begin = thread.now();
    for (const std::uint64_t to : {begin + hour_ns, begin, begin + 100 * hour_ns, std::uint64_t{0},
                                   UINT64_MAX / 2, begin - 1, UINT64_MAX - hour_ns, begin}) {
        thread.set_clock(to);
        expect_pace(thread.run(run_length));
    }
}

}  // namespace
}  // namespace tensorpool::watch
