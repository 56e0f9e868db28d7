#pragma once

/// Random sizes and orders. They are drawn before the clock starts, and are the same for each
/// subject.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace perf {

using Generator = std::mt19937_64;

/// Draws a size from `min_bytes` to `max_bytes`, log-uniformly: each doubling is equally likely.
inline std::size_t log_uniform(Generator& generator, std::size_t min_bytes, std::size_t max_bytes) {
    std::uniform_real_distribution<double> exponent(std::log2(static_cast<double>(min_bytes)),
                                                    std::log2(static_cast<double>(max_bytes)));
    return std::clamp(static_cast<std::size_t>(std::exp2(exponent(generator))), min_bytes,
                      max_bytes);
}

/// Returns the numbers from 0 to `count` - 1 in random order.
inline std::vector<std::uint32_t> shuffled(Generator& generator, std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::shuffle(numbers.begin(), numbers.end(), generator);
    return numbers;
}

}  // namespace perf
