#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace tensorpool::watch {

/// The most watchers that there can be (kinds/watcher.hpp).
inline constexpr unsigned max_watchers = 4;

/// The bytes of requests through one cache until a watcher looks at one.
struct Distance {
    /// Leaves room for the bytes of any request.
    static constexpr std::int64_t never = INT64_MAX / 2;

    std::int64_t left = 0;
    /// The mean of the random distance, which determines what the request at its end stands for.
    /// If it is 0, the watcher only chooses a new distance there.
    double mean = 0;
};

/// What the countdown of a cache (`ThreadCache::bytes_to_sample`) counts down to: the shortest of
/// the distances of all watchers. At first all of them have ended.
struct Countdown {
    std::array<Distance, max_watchers> distances;
    std::int64_t armed = 0;

    /// Reduces all distances by what the countdown has counted since `arm`, and returns that.
    std::int64_t settle(std::int64_t countdown) noexcept {
        const std::int64_t used = armed - countdown;
        for (Distance& distance : distances) distance.left -= used;
        armed = countdown;
        return used;
    }
    /// Returns the next countdown.
    std::int64_t arm() noexcept {
        const auto shorter = [](const Distance& a, const Distance& b) { return a.left < b.left; };
        return armed = std::ranges::min_element(distances, shorter)->left;
    }
};

}  // namespace tensorpool::watch
