#pragma once

#include <algorithm>
#include <cstdint>

#include "base/random_distance.hpp"

namespace tensorpool::watch {

/// Decides when a thread guards a block, so that samples take a given share of its time:
/// after each sample it lets the thread run for the sample's cost divided by the share. It converts
/// that time into a distance in requested bytes by the thread's present rate, at random, so that no
/// pattern of sizes is missed. Times are those of the thread's processor, in nanoseconds. If they
/// go back, the pace begins again.
class GuardPace {
public:
    bool has_begun() const noexcept { return has_begun_; }
    /// Begins with a first distance, which it returns. `seed` should differ between threads.
    std::int64_t begin(std::uint64_t now, std::uint64_t seed) noexcept {
        random_ = base::RandomDistance(seed);
        has_begun_ = true;
        looked_ = now;
        return distance_ = first_bytes;
    }

    /// Returns whether enough time has passed since the last sample to take one now. `cost` is the
    /// least that this sample will cost.
    bool is_due(std::uint64_t now, std::uint64_t cost, double share) const noexcept {
        const auto least = static_cast<double>(std::max(cost, cost_));
        return now < sampled_ || static_cast<double>(now - sampled_) * share >= least;
    }
    /// Notes what a sample cost: the allocation, and later the free, which costs about as much.
    void count(std::uint64_t now, std::uint64_t cost) noexcept {
        sampled_ = now;
        cost_ = (3 * cost_ + 2 * cost) / 4;
    }
    /// Returns the next distance. `left` is what is left of the last one.
    std::int64_t next(std::uint64_t now, std::int64_t left, double share) noexcept {
        if (now < looked_) {
            looked_ = now;
            return distance_ = first_bytes;
        }
        const auto elapsed = static_cast<double>(std::max<std::uint64_t>(now - looked_, 1));
        const double rate = static_cast<double>(distance_ - left) / elapsed;
        const double wait = static_cast<double>(cost_) / share;
        const double rest = std::max(wait - static_cast<double>(now - sampled_), wait / 8);
        looked_ = now;
        distance_ = random_.next(rate * rest);
        return distance_;
    }

private:
    static constexpr std::int64_t first_bytes = 4096;

    base::RandomDistance random_;
    bool has_begun_ = false;
    std::uint64_t looked_ = 0;   // when the distance was set
    std::uint64_t sampled_ = 0;  // when the last sample was taken
    // Of a sample. The first value is a guess (perf/results/checks.md).
    std::uint64_t cost_ = 20'000;
    std::int64_t distance_ = 0;
};

}  // namespace tensorpool::watch
