#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace tensorpool::testing {

/// Random numbers that are the same on every system for the same seed.
class Random {
public:
    explicit Random(std::uint32_t seed) : engine_(seed) {}

    std::uint32_t below(std::size_t end) { return static_cast<std::uint32_t>(engine_() % end); }
    bool one_in(std::uint32_t count) { return below(count) == 0; }
    /// A number from `first` (at least 1) to `last`, with a uniform logarithm.
    std::uint32_t log_uniform(std::uint32_t first, std::uint32_t last) {
        std::uint32_t end = first;
        do {
            end = end < last / 2 ? end * 2 : last;
        } while (end < last && !one_in(3));
        return first + below(end - first + 1);
    }
    template <class Value>
    void shuffle(std::vector<Value>& values) {
        for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
    }

private:
    std::mt19937 engine_;
};

}  // namespace tensorpool::testing
