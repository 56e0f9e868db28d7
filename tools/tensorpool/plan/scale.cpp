#include "plan/scale.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace tensorpool::command::planning {
namespace {

/// Returns the smallest number of the form 1, 2 or 5 times a power of ten that is at least
/// `min_step`.
double round_step(double min_step) {
    const double power = std::pow(10.0, std::floor(std::log10(min_step)));
    for (const double factor : {1.0, 2.0, 5.0}) {
        if (power * factor >= min_step * 0.999) return power * factor;
    }
    return power * 10;
}

}  // namespace

std::vector<Mark> time_marks(double from, double to, unsigned count) {
    const double step = std::max(1.0, round_step((to - from) / count));
    std::vector<Mark> marks;
    // The number of marks is limited because beyond 2^53 adding 1 changes nothing.
    double value = std::ceil(from / step) * step;
    for (unsigned i = 0; i < 4 * count && value <= to; ++i, value += step) {
        marks.push_back({value, fmt::format("{:.0f}", value == 0 ? 0.0 : value)});
    }
    return marks;
}

std::vector<Mark> size_marks(double to, unsigned count) {
    static constexpr std::array units = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    std::size_t unit = 0;
    double factor = 1;
    // A unit is used from two of it on: 1.5 MiB is shown in KiB, so that marks are round.
    for (; unit + 1 < units.size() && to >= 2048 * factor; ++unit) factor *= 1024;
    const double step = std::max(factor == 1 ? 1.0 : 0.0, round_step(to / factor / count));
    std::vector<Mark> marks;
    for (unsigned i = 0; i * step * factor <= to && i < 4 * count; ++i) {
        marks.push_back({i * step * factor, i == 0
                                                ? std::string("0")
                                                : fmt::format("{:g} {}", i * step, units[unit])});
    }
    return marks;
}

}  // namespace tensorpool::command::planning
