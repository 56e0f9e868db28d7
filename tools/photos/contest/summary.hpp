#pragma once

/// @file
/// The summary of all rounds.

#include <string>
#include <vector>

#include "contest/compared_allocator.hpp"
#include "options.hpp"
#include "run.hpp"

namespace tensorpool::photos {

/// The runs of one allocator; at least one.
struct Series {
    ComparedAllocator allocator;
    std::vector<Run> runs;
};

/// Returns the text at the end: the amount of work, the table of medians, the reports of the pool
/// and of the Context, whether the results are equal, and what the pool saved. The savings are
/// stated only if all allocators developed the same pictures. `all` begins with malloc and includes
/// the pool and the Context. Ends with a newline.
std::string summary(const std::vector<Series>& all, const Options& options, bool results_differ);

}  // namespace tensorpool::photos
