#pragma once

#include <filesystem>
#include <vector>

#include "architecture/layer_check.hpp"

namespace tensorpool::architecture {

/// Reads the CMakeLists.txt files in lib/ below `root` and returns these violations, sorted by file
/// and line:
/// - each source in lib/, of any system, that no CMakeLists.txt lists,
/// - each public header that is listed in no `tensorpool_headers(...)`, or in more than one,
/// - each listed file that does not exist,
/// - each include of a file of a component that the including component does not need, according to
///   `tensorpool_add_component(NAME NEEDED...)`. An include within `#if __has_include` is allowed,
///   and so are all includes of a component that is a separate library, such as torch.
///
/// A header inside lib/ belongs to the component of the source next to it with the same name.
/// Otherwise it belongs to the only component of its layer. If its layer has several components, it
/// belongs to none.
std::vector<Violation> check_components(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
