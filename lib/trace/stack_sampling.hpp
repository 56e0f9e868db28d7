#pragma once

#include <cstdint>

#include "base/random_distance.hpp"

namespace tensorpool::trace {

/// Decides which allocations of a recording have their stacks recorded: one every `interval` bytes
/// on average.
class SampleDistance {
public:
    /// Starts sampling for a thread. An interval of 0 samples nothing; `seed` should differ between
    /// threads.
    void begin(std::uint64_t interval, std::uint64_t seed) noexcept {
        interval_ = interval;
        distance_ = base::RandomDistance(seed);
        left_ = next();
    }
    /// Returns true if an allocation of `bytes` bytes is to be sampled.
    bool takes(std::uint64_t bytes) noexcept {
        left_ -= static_cast<std::int64_t>(bytes);
        if (left_ >= 0) [[likely]]
            return false;
        left_ = next();
        return interval_ != 0;
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    std::int64_t next() noexcept {
        return interval_ == 0 ? never : distance_.next(static_cast<double>(interval_));
    }

    std::uint64_t interval_ = 0;
    base::RandomDistance distance_;
    std::int64_t left_ = never;
};

}  // namespace tensorpool::trace
