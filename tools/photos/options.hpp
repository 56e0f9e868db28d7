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
    /// Set in the processes that the program starts itself: `malloc`, `pool`, `context` or `probe`.
    std::string work = {};
    std::vector<std::string> pictures = {};
};

/// Parses the arguments. Throws std::invalid_argument that names the argument and what was
/// expected.
Options parse_options(const std::vector<std::string>& arguments);

/// Returns the text of --help.
std::string usage();

}  // namespace tensorpool::photos
