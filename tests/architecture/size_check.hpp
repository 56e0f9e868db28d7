#pragma once

#include <filesystem>
#include <vector>

#include "architecture/layer_check.hpp"

namespace tensorpool::architecture {

inline constexpr std::size_t max_functions =
    30;                                       ///< member functions of a class, inherited ones too
inline constexpr std::size_t max_files = 40;  ///< files of a kind in a folder

/// Returns the classes in lib/ and include/ that have more than `max_functions` member functions,
/// and the folders that hold more than `max_files` files of a kind, except those that
/// tests/architecture/large_interfaces.txt lists with a reason. Also returns the lines of that list
/// that have no reason, name a class that is no public one, or are not needed.
///
/// Member functions are counted as `classes_in` lists them. A function that overrides an inherited
/// one is counted once. Functions that a class inherits from other libraries do not count.
std::vector<Violation> check_sizes(const std::filesystem::path& root);

}  // namespace tensorpool::architecture
