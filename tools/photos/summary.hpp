#pragma once

/// @file
/// What came of all rounds.

#include <string>
#include <vector>

#include "contender.hpp"
#include "run.hpp"

namespace tensorpool::photos {

/// One contender's runs, at least one.
struct Series {
    Contender contender;
    std::vector<Run> runs;
};

/// The text at the end: what was done, the table of medians, the pool's report, whether the results
/// are the same, and what the pool saved; that only when all contenders did the same pictures.
/// `all` begins with malloc and ends with the pool. Ends with a newline.
std::string summary(const std::vector<Series>& all, const std::string& output, bool results_differ);

}  // namespace tensorpool::photos
