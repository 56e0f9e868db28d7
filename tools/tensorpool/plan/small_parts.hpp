#pragma once

/// @file
/// Merges rectangles that are too small to be drawn individually: how much of each cell they cover.

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
    /// Returns an SVG path of the cells whose covered part is above `shade` / `shades` and at most
    /// (`shade` + 1) / `shades`. The last shade includes cells covered more than once. Returns ""
    /// if there are none.
    std::string path_of(unsigned shade) const;

private:
    unsigned shade_of(double covered) const noexcept;

    Rectangle area_;
    std::size_t columns_;
    std::size_t rows_;
    std::vector<float> covered_;  // the covered part of each cell, row by row; 1 is the whole cell
};

}  // namespace tensorpool::command::planning
