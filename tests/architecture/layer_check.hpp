#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace tensorpool::architecture {

/// A line that breaks the rules of lib/layers.txt.
struct Violation {
    std::string file;  ///< below the project's root
    int line;          ///< from 1; 0 for the file as a whole
    std::string text;  ///< the layer, what it includes, what is allowed
};

/// As compilers print it: `file:line: text`.
std::ostream& operator<<(std::ostream& out, const Violation& violation);

/// Reads lib/layers.txt and every source in lib/ and include/tensorpool/ below `root`, and returns
/// what breaks the rules, sorted by file and line. Throws std::runtime_error when layers.txt cannot
/// be read.
std::vector<Violation> check_layers(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
