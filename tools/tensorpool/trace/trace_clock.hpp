#pragma once

#include <cstdint>

namespace tensorpool::command::trace {

/// Makes nanoseconds of cycles, from moments that are known by both clocks. How long a cycle is
/// follows from the two that lie furthest apart.
class TraceClock {
public:
    void add(std::uint64_t cycles, std::uint64_t unix_ns) noexcept {
        if (!has_any_ || cycles < first_.cycles) first_ = {cycles, unix_ns};
        if (!has_any_ || cycles > last_.cycles) last_ = {cycles, unix_ns};
        has_any_ = true;
    }
    /// Nanoseconds from `begin` to `cycles`; 0 for what came before.
    std::uint64_t ns_between(std::uint64_t begin, std::uint64_t cycles) const noexcept {
        if (cycles <= begin) return 0;
        const double ns = static_cast<double>(cycles - begin) * ns_per_cycle();
        constexpr double most = 0x1p63;
        return ns < most ? static_cast<std::uint64_t>(ns) : std::uint64_t{1} << 63;
    }

private:
    struct Moment {
        std::uint64_t cycles = 0;
        std::uint64_t unix_ns = 0;
    };

    // Counters of processors run at 1 MHz to 10 GHz. What lies far outside was measured over a
    // step of the system's clock, or by nobody.
    double ns_per_cycle() const noexcept {
        if (last_.unix_ns <= first_.unix_ns) return 1;
        const double ns = static_cast<double>(last_.unix_ns - first_.unix_ns) /
                          static_cast<double>(last_.cycles - first_.cycles);
        return ns > 0.01 && ns < 10'000 ? ns : 1;
    }

    Moment first_;
    Moment last_;
    bool has_any_ = false;
};

}  // namespace tensorpool::command::trace
