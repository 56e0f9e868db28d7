#pragma once

/// @file
/// From figures to pixels, and where an axis has its marks.

#include <cstdint>
#include <string>
#include <vector>

namespace tensorpool::command::planning {

struct Scale {
    double from = 0;  ///< the figure at `begin`
    double to = 1;    ///< above `from`: that at `end`
    double begin = 0;
    double end = 1;
    double operator()(double figure) const noexcept {
        return begin + (figure - from) / (to - from) * (end - begin);
    }
};

struct Mark {
    double figure = 0;
    std::string label;
};

/// Whole numbers at a distance of 1, 2 or 5 times a power of ten, about `count` of them.
std::vector<Mark> time_marks(double from, double to, unsigned count);
/// Sizes from 0 to at most `to` bytes, about `count` of them, all in one unit.
std::vector<Mark> size_marks(double to, unsigned count);

}  // namespace tensorpool::command::planning
