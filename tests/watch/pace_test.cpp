#include "watch/pace.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "watch/profile/profiled_blocks.hpp"

namespace tensorpool::watch {
namespace {

constexpr unsigned watcher = 1;
constexpr std::uint64_t interval = 512 << 10;

/// A thread that requests blocks of `bytes` bytes, each after `work_ns` of work, on a clock of its
/// own. Its requests are sampled for the heap profile.
class Thread {
public:
    struct Work {
        std::int64_t bytes;
        std::uint64_t work_ns;
        std::uint64_t cost_ns;
        std::uint64_t free_cost_ns = 0;
    };
    Thread(SharedPace& shared, const Work& work, std::uint64_t seed = 12345) : given_(work) {
        pace_.begin(seed, shared);
        pace_.set(distance_, watcher, profile_terms, interval);
    }
    void request(int times) {
        for (int i = 0; i < times; ++i) {
            now_ += given_.work_ns;
            worked_ += static_cast<double>(given_.work_ns);
            distance_.left -= given_.bytes;
            pace_.pass(given_.bytes);
            if (distance_.left < 0) look();
        }
    }
    void set_work(std::uint64_t ns) { given_.work_ns = ns; }

    int samples() const { return samples_; }
    double mean() const { return distance_.mean; }
    /// The time that samples took.
    double cost() const {
        return samples_ * static_cast<double>(given_.cost_ns + given_.free_cost_ns);
    }
    /// The share of the time that samples took, apart from what a thread may spend at once.
    double share() const { return (cost() - 1e6) / worked_; }
    /// What all requests amount to, by the weights of the samples.
    double estimated_bytes() const { return estimated_; }
    double error() const { return std::sqrt(variance_); }

private:
    void look() {
        while (distance_.mean == 0) {
            if (pace_.lacks_rate()) pace_.look(now_);
            const std::int64_t left = distance_.left;
            pace_.set(distance_, watcher, profile_terms, interval);
            distance_.left += left;
            if (distance_.left >= 0) return;
        }
        const double bytes = static_cast<double>(given_.bytes);
        const double probability = -std::expm1(-bytes / distance_.mean);
        estimated_ += bytes / probability;
        variance_ += bytes * bytes * (1 - probability) / probability / probability;
        if (pace_.is_time_to_look(profile_terms)) pace_.look(now_);
        pace_.set(distance_, watcher, profile_terms, interval);
        pace_.count(watcher, profile_terms, static_cast<double>(given_.cost_ns));
        pace_.count_free(watcher, static_cast<double>(given_.free_cost_ns));
        now_ += given_.cost_ns + given_.free_cost_ns;
        ++samples_;
    }

    Pace pace_;
    Distance distance_;
    Work given_;
    std::uint64_t now_ = 1;
    double worked_ = 0;
    int samples_ = 0;
    double estimated_ = 0;
    double variance_ = 0;
};

class PaceOfSamples : public ::testing::Test {
protected:
    SharedPace shared_;
};

TEST_F(PaceOfSamples, KeepsTheIntervalWhileSamplesAreCheap) {
    Thread thread(shared_, {.bytes = 1000, .work_ns = 10'000, .cost_ns = 5000});
    thread.request(1'000'000);
    EXPECT_EQ(thread.mean(), static_cast<double>(interval));
    EXPECT_NEAR(thread.estimated_bytes(), 1e9, 5 * thread.error());
}

TEST_F(PaceOfSamples, KeepsAnIntervalOfATebibyte) {
    SharedPace shared;
    Pace pace;
    pace.begin(1, shared);
    pace.pass(1 << 23);
    pace.look(1'000'000);
    Distance distance;
    pace.set(distance, watcher, profile_terms, 0x1p40);
    EXPECT_EQ(distance.mean, 0x1p40);
}

TEST_F(PaceOfSamples, RaisesTheMeanWhereSamplesWouldTakeMoreThanTheShare) {
    for (const std::int64_t bytes : {64, 4096, 1 << 20}) {
        Thread thread(shared_, {.bytes = bytes, .work_ns = 100, .cost_ns = 5000});
        thread.request(20'000'000);
        EXPECT_GT(thread.samples(), 100) << bytes;
        EXPECT_LT(thread.share(), 1.3 * profile_terms.share) << bytes;
        EXPECT_NEAR(thread.estimated_bytes(), 20e6 * static_cast<double>(bytes), 5 * thread.error())
            << bytes;
    }
}

TEST_F(PaceOfSamples, FreesTakeTheirPartOfTheShare) {
    Thread thread(shared_, {.bytes = 4096, .work_ns = 100, .cost_ns = 1000, .free_cost_ns = 9000});
    thread.request(20'000'000);
    EXPECT_GT(thread.samples(), 100);
    EXPECT_LT(thread.share(), 1.3 * profile_terms.share);
}

TEST_F(PaceOfSamples, TakesMoreSamplesInTheFirst50Milliseconds) {
    Thread thread(shared_, {.bytes = 256 << 10, .work_ns = 20'000, .cost_ns = 5000});
    thread.request(2500);
    EXPECT_GT(thread.samples(), 150);
    thread.request(10'000);
    const int before = thread.samples();
    thread.request(2500);
    EXPECT_LT(thread.samples() - before, 100);
}

TEST_F(PaceOfSamples, SavesTimeWhileTheThreadAllocatesLittle) {
    Thread thread(shared_, {.bytes = 1 << 20, .work_ns = 1'000'000, .cost_ns = 1000});
    thread.request(10'000);
    thread.set_work(100);
    const int before = thread.samples();
    thread.request(3000);
    EXPECT_GT(thread.samples() - before, 1500);
}

TEST_F(PaceOfSamples, ReturnsToTheIntervalWhenTheThreadAllocatesLess) {
    Thread thread(shared_, {.bytes = 4096, .work_ns = 100, .cost_ns = 5000});
    thread.request(10'000'000);
    EXPECT_GT(thread.mean(), 10.0 * interval);
    thread.set_work(1'000'000);
    thread.request(1'000'000);
    EXPECT_EQ(thread.mean(), static_cast<double>(interval));
}

TEST_F(PaceOfSamples, ThreadsThatEndSoonKeepToTheShareTogether) {
    constexpr int threads = 2000;
    constexpr int requests = 20'000;
    constexpr std::uint64_t work_ns = 10;
    double cost = 0;
    double estimated = 0;
    double variance = 0;
    for (int i = 0; i < threads; ++i) {
        const Thread::Work work{.bytes = 2000 + i, .work_ns = work_ns, .cost_ns = 5000};
        Thread thread(shared_, work, static_cast<std::uint64_t>(i) * 1'000'003);
        thread.request(requests);
        cost += thread.cost();
        estimated += thread.estimated_bytes();
        variance += thread.error() * thread.error();
    }
    const double time = 1.0 * threads * requests * work_ns;
    EXPECT_LT(cost / time, 2 * profile_terms.share);
    const double bytes = (2000 + (threads - 1) / 2.0) * threads * requests;
    EXPECT_NEAR(estimated, bytes, 5 * std::sqrt(variance));
}

// Guards: the time decides, and no interval.

constexpr std::uint64_t second_ns = 1'000'000'000;
constexpr std::uint64_t hour_ns = 3600 * second_ns;
constexpr Terms guard_terms{.share = 0.01,
                            .first_cost_ns = 30'000,
                            .enough = 1,
                            .max_saved = 2,
                            .haste = 0.25,
                            .blocks_per_look = 1};

/// A thread that works for `work_ns` before each request, of which some are guarded.
class GuardedThread {
public:
    struct Work {
        std::int64_t bytes;
        std::uint64_t work_ns;
        std::uint64_t cost_ns;  // of a guard, and as much of its free
    };
    GuardedThread(SharedPace& shared, const Work& work) : work_(work) {
        pace_.begin(12345, shared);
    }
    /// Returns the guards of so many requests.
    unsigned request(unsigned times) {
        unsigned guards = 0;
        for (unsigned i = 0; i < times; ++i) {
            now_ += work_.work_ns;
            distance_.left -= work_.bytes;
            pace_.pass(work_.bytes);
            if (distance_.left >= 0) continue;
            pace_.look(now_);
            const auto cost = static_cast<double>(work_.cost_ns);
            if (pace_.may_take(watcher, guard_terms, cost)) {
                now_ += 2 * work_.cost_ns;
                pace_.count(watcher, guard_terms, cost);
                pace_.count_free(watcher, cost);
                ++guards;
            }
            pace_.set(distance_, watcher, guard_terms, 4096);
        }
        return guards;
    }
    double share_of(unsigned guards, unsigned requests) const {
        const double cost = 2.0 * guards * static_cast<double>(work_.cost_ns);
        return cost / (cost + static_cast<double>(work_.work_ns) * requests);
    }
    void set_clock(std::uint64_t now) { now_ = now; }
    std::uint64_t now() const { return now_; }

private:
    Pace pace_;
    Distance distance_;
    Work work_;
    std::uint64_t now_ = second_ns;
};

class PaceOfGuards : public ::testing::Test {
protected:
    SharedPace shared_;
};

TEST_F(PaceOfGuards, SpendsTheShareOnSmallBlocks) {
    GuardedThread thread(shared_, {.bytes = 1000, .work_ns = 300, .cost_ns = 15'000});
    constexpr unsigned requests = 30'000'000;
    const unsigned guards = thread.request(requests);
    EXPECT_GT(thread.share_of(guards, requests), 0.8 * guard_terms.share);
    EXPECT_LT(thread.share_of(guards, requests), 1.2 * guard_terms.share);
}

// Each is larger than the distance, so each request asks for a guard.
TEST_F(PaceOfGuards, SpendsNoMoreOnLargeBlocksWhosePagesCostMore) {
    GuardedThread thread(shared_, {.bytes = 8 << 20, .work_ns = 2'000'000, .cost_ns = 4'000'000});
    constexpr unsigned requests = 50'000;
    const unsigned guards = thread.request(requests);
    EXPECT_GT(guards, 10U);
    EXPECT_LT(thread.share_of(guards, requests), 1.2 * guard_terms.share);
}

// A guard and its free cost 40 µs, so one in 4 ms takes a hundredth of the time.
TEST_F(PaceOfGuards, PaceReturnsAfterTheClockHasJumped) {
    GuardedThread thread(shared_, {.bytes = 1000, .work_ns = 1000, .cost_ns = 20'000});
    constexpr unsigned requests = 400'000;
    thread.request(requests);
    const std::uint64_t begin = thread.now();
    for (const std::uint64_t to : {begin + hour_ns, begin, begin + 100 * hour_ns, std::uint64_t{0},
                                   UINT64_MAX / 2, begin - 1, UINT64_MAX - hour_ns, begin}) {
        thread.set_clock(to);
        const unsigned guards = thread.request(requests);
        EXPECT_GE(guards, 50U) << to;
        EXPECT_LE(guards, 200U) << to;
    }
}

TEST(Countdown, CountsDownAllDistancesFromTheShortest) {
    Countdown countdown;
    countdown.distances = {{{.left = 100}, {.left = 30}, {.left = 500}, {.left = 500}}};
    EXPECT_EQ(countdown.arm(), 30);
    EXPECT_EQ(countdown.settle(30 - 50), 50);
    EXPECT_EQ(countdown.distances[0].left, 50);
    EXPECT_EQ(countdown.distances[1].left, -20);
    countdown.distances[1].left = Distance::never;
    EXPECT_EQ(countdown.arm(), 50);
}

}  // namespace
}  // namespace tensorpool::watch
