#pragma once

/// @file
/// What is too small to be drawn by itself, drawn together: how much of each cell it covers.

#include <string>
#include <vector>

namespace tensorpool::command::planning {

/// In pixels; `right` is above `left` and `bottom` above `top`.
struct Rectangle {
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;
};

class SmallParts {
public:
    static constexpr double cell = 2;  ///< pixels
    static constexpr unsigned shades = 4;

    explicit SmallParts(const Rectangle& area);

    void add(const Rectangle& part);
    /// For a path of SVG: the cells that are covered by at most `shade` + 1 of `shades` parts, and
    /// by more than `shade` of them; "" where there are none.
    std::string path_of(unsigned shade) const;

private:
    unsigned shade_of(double covered) const noexcept;

    Rectangle area_;
    std::size_t columns_;
    std::size_t rows_;
    std::vector<float> covered_;  // of each cell, row by row: 1 is all of it
};

}  // namespace tensorpool::command::planning
