#pragma once

/// What is drawn before the clock runs. Every subject gets the same draws.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace perf {

using Generator = std::mt19937_64;

/// A size from `least` to `most` bytes, every doubling as likely as any other.
inline std::size_t log_uniform(Generator& generator, std::size_t least, std::size_t most) {
    std::uniform_real_distribution<double> exponent(std::log2(static_cast<double>(least)),
                                                    std::log2(static_cast<double>(most)));
    return std::clamp(static_cast<std::size_t>(std::exp2(exponent(generator))), least, most);
}

/// The numbers below `count` in random order.
inline std::vector<std::uint32_t> shuffled(Generator& generator, std::size_t count) {
    std::vector<std::uint32_t> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0U);
    std::shuffle(numbers.begin(), numbers.end(), generator);
    return numbers;
}

}  // namespace perf
