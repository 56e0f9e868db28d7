#pragma once

#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

namespace tensorpool::architecture {

/// A line that violates the rules of lib/layers.txt or of tools/tensorpool/layers.txt.
struct Violation {
    std::string file;  ///< relative to the project's root
    int line;          ///< counted from 1; 0 for the file as a whole
    std::string text;  ///< the layer, what it includes, and what is allowed
};

/// Formats a violation like a compiler: `file:line: text`.
std::ostream& operator<<(std::ostream& out, const Violation& violation);

/// Reads lib/layers.txt and every source in lib/ and include/tensorpool/ below `root`, and, if
/// there is a command, its layers.txt and every source in tools/tensorpool/. Returns the violations
/// of the rules, sorted by file and line. Throws std::runtime_error if a layers.txt cannot be read.
std::vector<Violation> check_layers(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
