#pragma once

#include <cmath>
#include <cstdint>

namespace tensorpool::trace {

/// Decides which allocations a thread samples: one every `interval` bytes on average, at
/// exponentially distributed distances, so that no pattern of sizes is missed. tcmalloc does the
/// same ("Sampling" in its design documents). An allocation of n bytes is sampled with probability
/// 1 - exp(-n / interval).
class SampleDistance {
public:
    /// Starts sampling for a thread. An interval of 0 samples nothing; `seed` should differ between
    /// threads.
    void begin(std::uint64_t interval, std::uint64_t seed) noexcept {
        interval_ = interval;
        state_ = seed * 2 + 1;
        left_ = interval == 0 ? never : next();
    }
    /// Returns true if an allocation of `bytes` bytes is to be sampled.
    bool takes(std::uint64_t bytes) noexcept {
        left_ -= static_cast<std::int64_t>(bytes);
        if (left_ > 0) [[likely]]
            return false;
        left_ = interval_ == 0 ? never : next();
        return interval_ != 0;
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    std::int64_t next() noexcept {
        // xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift generators").
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        const std::uint64_t random = state_ * 0x2545F4914F6CDD1D;
        const double unit = (static_cast<double>(random >> 11) + 1) * 0x1p-53;  // in (0, 1]
        const double distance = -std::log(unit) * static_cast<double>(interval_);
        // The interval may come from another process and be any number.
        return distance < 0x1p62 ? static_cast<std::int64_t>(distance) + 1 : never;
    }

    std::uint64_t interval_ = 0;
    std::uint64_t state_ = 1;
    std::int64_t left_ = never;
};

}  // namespace tensorpool::trace
