#include "plan/small_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tensorpool::command::planning {
namespace {

std::size_t cells_in(double length) {
    return static_cast<std::size_t>(std::ceil(length / SmallParts::cell));
}

/// Returns the part of cell number `at` that the interval covers, from 0 to 1.
double overlap(double from, double to, std::size_t at) {
    const auto begin = static_cast<double>(at);
    return std::max(0.0, std::min(to, begin + 1) - std::max(from, begin));
}

}  // namespace

SmallParts::SmallParts(const Rectangle& area)
    : area_(area),
      columns_(cells_in(area.right - area.left)),
      rows_(cells_in(area.bottom - area.top)),
      covered_(columns_ * rows_) {}

void SmallParts::add(const Rectangle& part) {
    const double left = (part.left - area_.left) / cell;
    const double right = (part.right - area_.left) / cell;
    const double top = (part.top - area_.top) / cell;
    const double bottom = (part.bottom - area_.top) / cell;
    const auto last_row = std::min(rows_, static_cast<std::size_t>(std::ceil(bottom)));
    const auto last_column = std::min(columns_, static_cast<std::size_t>(std::ceil(right)));
    for (auto row = static_cast<std::size_t>(std::max(top, 0.0)); row < last_row; ++row) {
        const double height = overlap(top, bottom, row);
        for (auto column = static_cast<std::size_t>(std::max(left, 0.0)); column < last_column;
             ++column) {
            covered_[row * columns_ + column] +=
                static_cast<float>(height * overlap(left, right, column));
        }
    }
}

unsigned SmallParts::shade_of(double covered) const noexcept {
    const double shade = std::ceil(covered * shades);
    return std::min(shades, static_cast<unsigned>(shade));
}

std::string SmallParts::path_of(unsigned shade) const {
    std::string path;
    for (std::size_t row = 0; row < rows_; ++row) {
        for (std::size_t column = 0; column < columns_;) {
            const auto here = [&](std::size_t at) {
                return shade_of(covered_[row * columns_ + at]) == shade + 1;
            };
            std::size_t end = column;
            while (end < columns_ && here(end)) ++end;
            if (end > column) {
                const auto width = static_cast<double>(end - column) * cell;
                path += fmt::format(
                    "M{:g} {:g}h{:g}v{:g}h-{:g}z", area_.left + static_cast<double>(column) * cell,
                    area_.top + static_cast<double>(row) * cell, width, cell, width);
            }
            column = end + 1;
        }
    }
    return path;
}

}  // namespace tensorpool::command::planning
