#pragma once

#include <string>

#include "plan/buffers.hpp"
#include "plan/report.hpp"

namespace tensorpool::command::planning {

/// Returns the plan as a self-contained SVG: time against offset, with a rectangle for each buffer,
/// coloured by size and with a title, and with lines for the lower bound and the peak. It follows
/// the light or dark setting of the reader's system. Buffers below two pixels, and all but the
/// largest 8,000, are merged in grey and reported as a number, so that the picture of a million
/// buffers takes only a few MB.
std::string picture_of(const Buffers& buffers, const Outcome& outcome);

}  // namespace tensorpool::command::planning
