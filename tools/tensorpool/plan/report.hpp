#pragma once

/// @file
/// The output of `tensorpool plan`: the report and the picture.

#include "common/units.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

/// In pixels; `right` is above `left` and `bottom` above `top`.
struct Rectangle {
    double left = 0;
    double top = 0;
    double right = 0;
    double bottom = 0;
};

/// Merges rectangles that are too small to be drawn individually: how much of each cell they cover.
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

/// Maps values to pixels.
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

struct Outcome {
    std::string file;
    std::string origin;  ///< Buffers::origin
    std::size_t buffers = 0;
    MemoryPlan plan;
    bool checked = false;              ///< the plan in the file was checked; nothing was planned
    double seconds = 0;                ///< the time that planning took
    std::uint64_t capacity_bytes = 0;  ///< the capacity that the plan must fit into; 0: none
};

/// Returns how far the peak is above the lower bound, as a fraction of the lower bound; 0 if that
/// is 0.
double gap_of(const MemoryPlan& plan) noexcept;

inline bool fits(const Outcome& outcome) noexcept {
    return outcome.capacity_bytes == 0 || outcome.plan.peak_bytes <= outcome.capacity_bytes;
}

/// Returns the report for people: several lines, the last without a newline.
std::string report_text(const Outcome& outcome, Sizes sizes);
std::string report_json(const Outcome& outcome);

/// Returns the plan as a self-contained SVG: time against offset, with a rectangle for each buffer,
/// coloured by size and with a title, and with lines for the lower bound and the peak. It follows
/// the light or dark setting of the reader's system. Buffers below two pixels, and all but the
/// largest 8,000, are merged in grey and reported as a number, so that the picture of a million
/// buffers takes only a few MB.
std::string picture_of(const Buffers& buffers, const Outcome& outcome);

}  // namespace tensorpool::command::planning
