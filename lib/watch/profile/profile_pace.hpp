#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/random_distance.hpp"

namespace tensorpool::watch {

/// The distances in bytes between the samples that one thread takes for the heap profile. Their
/// mean is the interval that the process chose, and more where samples would take a larger share of
/// the thread's time than `share`. Time that was not needed is saved, up to a limit, and a thread
/// begins with some, so that what it loads first is seen well. Times are those of the thread's
/// processor, in nanoseconds.
class ProfilePace {
public:
    /// The largest share of a thread's time that samples take on average.
    static constexpr double share = 0.005;
    /// With this interval every allocation is sampled, whatever that takes. Tests use it.
    static constexpr std::uint64_t every_allocation = 1;

    bool is_on() const noexcept { return mean_ != 0; }
    /// The mean of the present distance, which determines the weight of the sample at its end.
    double mean() const noexcept { return mean_; }

    /// Begins, and returns the first distance. `seed` should differ between threads.
    std::int64_t begin(std::uint64_t seed, std::uint64_t interval) noexcept {
        *this = {};
        random_ = base::RandomDistance(seed);
        mean_ = least_mean(interval);
        return distance_ = random_.next(mean_);
    }
    void stop() noexcept { mean_ = 0; }

    /// Whether `next` needs the time. Reading it takes a system call, so most samples do not.
    bool needs_time() const noexcept { return samples_ % samples_per_look == 0; }
    /// Returns the next distance. `left` is what is left of the last one, at most 0. `now` may be
    /// any number if the time is not needed.
    std::int64_t next(std::uint64_t now, std::int64_t left, std::uint64_t interval) noexcept {
        passed_ += static_cast<double>(distance_ - left);
        if (needs_time()) choose_mean(now, interval);
        ++samples_;
        return distance_ = random_.next(mean_);
    }
    /// Notes that a request was to be sampled but was refused.
    void owe(std::size_t bytes, double mean) noexcept {
        owed_bytes_ = bytes;
        owed_mean_ = mean;
    }
    /// Returns the mean that was noted, once, if this is the same request; otherwise 0.
    double take_owed(std::size_t bytes) noexcept {
        const double mean = std::exchange(owed_mean_, 0);
        return bytes == owed_bytes_ ? mean : 0;
    }
    /// Notes what a sample cost, in nanoseconds.
    void count(std::uint64_t cost) noexcept {
        const auto ns = static_cast<double>(cost);
        cost_ = (7 * cost_ + ns) / 8;
        saved_ -= ns;
    }

private:
    static constexpr unsigned samples_per_look = 8;
    static constexpr double kept = 0.75;
    static constexpr double tiny = 1.0 / 64;

    static double least_mean(std::uint64_t interval) noexcept {
        return interval == every_allocation ? tiny : static_cast<double>(interval);
    }
    // Beyond it, samples take more than the share. Only requests for blocks that are not touched
    // come so fast.
    static constexpr double max_mean = 0x1p36;

    void choose_mean(std::uint64_t now, std::uint64_t interval) noexcept {
        const double passed = std::exchange(passed_, 0);
        if (looked_ != 0) {
            const auto elapsed = static_cast<double>(std::max(now, looked_ + 1) - looked_);
            bytes_ = kept * bytes_ + passed;
            time_ = kept * time_ + elapsed;
            saved_ = std::min(saved_ + share * elapsed, max_saved);
        }
        looked_ = now;
        const bool is_bound = time_ != 0 && interval != every_allocation;
        const double affordable = is_bound ? bytes_ / time_ * cost_ / share : 0;
        const double need = std::max(1 - saved_ / enough_saved, 0.0);
        mean_ = std::clamp(affordable * need, least_mean(interval), max_mean);
    }

    base::RandomDistance random_;
    double mean_ = 0;
    unsigned samples_ = 0;
    double passed_ = 0;    // bytes since the last look at the time
    double cost_ = 2'000;  // of a sample; the first value is a guess (perf/results/profile.md)
    // Of the time for samples; with `enough_saved`, nothing is spared.
    static constexpr double first_saved = 1e6;
    static constexpr double max_saved = 5e6;
    static constexpr double enough_saved = 0.5e6;
    double saved_ = first_saved;
    // What the thread allocated, and in what time; older samples count less.
    double bytes_ = 0;
    double time_ = 0;
    std::uint64_t looked_ = 0;
    std::int64_t distance_ = 0;
    std::size_t owed_bytes_ = 0;
    double owed_mean_ = 0;
};

/// The two distances behind the countdown of a thread's cache: to the next guarded block, and to
/// the next sample of the heap profile.
struct SampleDistances {
    /// Leaves room for the bytes of any request.
    static constexpr std::int64_t never = INT64_MAX / 2;

    std::int64_t to_guard = 0;
    std::int64_t to_sample = 0;
    std::int64_t armed = 0;

    /// Reduces both by what the countdown has counted since `arm`.
    void settle(std::int64_t countdown) noexcept {
        const std::int64_t used = armed - countdown;
        to_guard -= used;
        to_sample -= used;
        armed = countdown;
    }
    /// Returns the next countdown.
    std::int64_t arm() noexcept { return armed = std::min(to_guard, to_sample); }
};

}  // namespace tensorpool::watch
