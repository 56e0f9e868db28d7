#pragma once

/// @file
/// The output of `tensorpool plan`: the report and the picture.

#include "common/units.hpp"
#include "plan/buffers.hpp"

namespace tensorpool::command::planning {

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
