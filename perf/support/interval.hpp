#pragma once

/// Confidence intervals of medians.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace perf {

struct Interval {
    double low;
    double high;
};

/// Returns the 95 % confidence interval of the median, by ranks. This assumes no shape of the
/// distribution.
inline Interval interval_of_median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto count = static_cast<double>(values.size());
    const double half = 1.96 * std::sqrt(count) / 2;
    const auto at = [&](double rank) {
        return values[static_cast<std::size_t>(std::clamp(rank, 0.0, count - 1))];
    };
    return {at(count / 2 - half - 1), at(count / 2 + half)};
}

}  // namespace perf
