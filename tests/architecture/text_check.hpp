#pragma once

#include <filesystem>
#include <vector>

#include "architecture/layer_check.hpp"

namespace tensorpool::architecture {

inline constexpr std::size_t max_readme_lines = 180;  ///< of the README.md of the project

/// Returns the README.md of the project if it has more than `max_readme_lines` lines. Also returns
/// the lines of documents, and of sources in lib/, include/ and tools/, that have words which plain
/// English does without: actors without a name ("whoever"), and references to text beside ("as
/// above"), which an IDE does not show. perf/results/ is not checked for words. Also returns the
/// lines of documents in lib/ that name a C++ file between backquotes which does not exist.
std::vector<Violation> check_text(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
