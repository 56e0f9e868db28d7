#pragma once

#include <filesystem>
#include <vector>

#include "architecture/layer_check.hpp"

namespace tensorpool::architecture {

/// Reads the CMakeLists.txt files in lib/ below `root` and returns, sorted by file and line:
/// - each source in lib/, of whichever system, that no CMakeLists.txt names,
/// - each public header that is named by no `tensorpool_headers(...)`, or by more than one,
/// - each name of a file that does not exist,
/// - each include of a file of a component that the including component does not need, by
///   `tensorpool_add_component(NAME NEEDED...)`. An include within `#if __has_include` is allowed,
///   and so is each of a component that is a library of its own, such as torch.
///
/// A header inside lib/ belongs to the component of the source beside it that has its name, else to
/// the only component in its layer; one of a layer with several belongs to none.
std::vector<Violation> check_components(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
