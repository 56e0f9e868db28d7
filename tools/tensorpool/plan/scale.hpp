#pragma once

/// @file
/// Maps values to pixels, and chooses the marks of an axis.

#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::command::planning {

struct Scale {
    double from = 0;  ///< the value at `begin`
    double to = 1;    ///< the value at `end`; above `from`
    double begin = 0;
    double end = 1;
    double operator()(double value) const noexcept {
        return begin + (value - from) / (to - from) * (end - begin);
    }
};

struct Mark {
    double value = 0;
    std::string label;
};

/// Returns about `count` whole numbers at distances of 1, 2 or 5 times a power of ten.
std::vector<Mark> time_marks(double from, double to, unsigned count);
/// Returns about `count` sizes from 0 to at most `to` bytes, all in one unit.
std::vector<Mark> size_marks(double to, unsigned count);

}  // namespace tensorpool::command::planning
