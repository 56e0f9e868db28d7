#pragma once

/// @file
/// The command line.

#include <string>
#include <vector>

namespace tensorpool::photos {

struct Options {
    int rounds = 3;
    int threads = 1;
    bool frugal = false;
    std::string output = {};
    bool help = false;
    /// Set in the processes that the program starts of itself: `malloc`, `pool`, `context` or
    /// `probe`.
    std::string work = {};
    std::vector<std::string> pictures = {};
};

/// Throws std::invalid_argument that names the word, and what was expected.
Options parse_options(const std::vector<std::string>& words);

/// What --help prints.
std::string usage();

}  // namespace tensorpool::photos
