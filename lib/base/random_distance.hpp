#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace tensorpool::base {

/// Returns the next number of a generator with this state, which is not 0: xorshift64* (Vigna, "An
/// experimental exploration of Marsaglia's xorshift generators").
inline std::uint64_t next_random(std::uint64_t& state) noexcept {
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return state * 0x2545F4914F6CDD1D;
}

/// Random distances in bytes between samples. They are exponentially distributed, so that no
/// pattern of sizes is missed: with a mean of m, a request of n bytes is sampled with the
/// probability 1 - exp(-n / m). tcmalloc does the same ("Sampling" in its design documents).
class RandomDistance {
public:
    constexpr RandomDistance() noexcept = default;
    /// `seed` should differ between threads.
    explicit RandomDistance(std::uint64_t seed) noexcept : state_(seed * 2 + 1) {}

    /// Returns the next distance: the bytes before the one whose request is sampled.
    std::int64_t next(double mean) noexcept {
        const std::uint64_t random = next_random(state_);
        const double unit = (static_cast<double>(random >> 11) + 1) * 0x1p-53;  // in (0, 1]
        return static_cast<std::int64_t>(std::min(-std::log(unit) * mean, max_distance));
    }

private:
    static constexpr double max_distance = 0x1p60;  // leaves room for the bytes of any request

    std::uint64_t state_ = 1;
};

}  // namespace tensorpool::base
