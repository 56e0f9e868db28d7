#pragma once

#include <string>

#include "plan/buffers.hpp"
#include "plan/report.hpp"

namespace tensorpool::command::planning {

/// The plan as SVG that needs nothing but itself: time against offset, a rectangle for each buffer,
/// coloured by size, with a title that shows what it is; the lower bound and the peak as lines. In
/// the colours that the reader's system is set to, light or dark. What would be smaller than two
/// pixels, and what is beyond the largest 8,000, is drawn together and told as a number, so that
/// the picture of a million buffers is no larger than some MB.
std::string picture_of(const Buffers& buffers, const Outcome& outcome);

}  // namespace tensorpool::command::planning
