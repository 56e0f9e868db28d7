#pragma once

#include <cstddef>
#include <cstdint>
#include <random>

namespace tensorpool::stress::devices {

/// The same numbers for the same seed on every machine: no distribution of the standard library.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed * 0x9e3779b97f4a7c15U + 1) {}

    std::size_t below(std::size_t bound) { return static_cast<std::size_t>(engine_() % bound); }
    bool one_in(std::size_t bound) { return below(bound) == 0; }
    std::uint64_t word() { return engine_(); }
    /// Returns a size from 1 to `most`; each doubling is about equally likely.
    std::size_t size(std::size_t most) {
        std::size_t doublings = 0;
        while (most >> doublings > 1) ++doublings;
        const std::size_t low = std::size_t{1} << below(doublings + 1);
        const std::size_t bytes = low + below(low);
        return bytes < most ? bytes : most;
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace tensorpool::stress::devices
