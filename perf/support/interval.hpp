#pragma once

/// How sure a median is.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace perf {

struct Interval {
    double low;
    double high;
};

/// The interval in which the median lies with a probability of 95 %, by ranks: no shape of the
/// distribution is assumed.
inline Interval interval_of_median(std::vector<double> figures) {
    std::sort(figures.begin(), figures.end());
    const auto count = static_cast<double>(figures.size());
    const double half = 1.96 * std::sqrt(count) / 2;
    const auto at = [&](double rank) {
        return figures[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))];
    };
    return {at(count / 2 - half - 1), at(count / 2 + half)};
}

}  // namespace perf
