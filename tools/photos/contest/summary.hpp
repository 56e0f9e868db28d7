#pragma once

/// @file
/// What came of all rounds.

#include <string>
#include <vector>

#include "contest/contender.hpp"
#include "options.hpp"
#include "run.hpp"

namespace tensorpool::photos {

/// One contender's runs, at least one.
struct Series {
    Contender contender;
    std::vector<Run> runs;
};

/// The text at the end: what was done, the table of medians, the reports of the pool and of the
/// Context, whether the results are the same, and what the pool saved; that only when all
/// contenders did the same pictures. `all` begins with malloc and has the pool and the Context.
/// Ends with a newline.
std::string summary(const std::vector<Series>& all, const Options& options, bool results_differ);

}  // namespace tensorpool::photos
