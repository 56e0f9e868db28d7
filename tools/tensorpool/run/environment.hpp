#pragma once

#include <string>
#include <vector>

#include "run/arguments.hpp"
#include "run/parts.hpp"

namespace tensorpool::command::run {

/// Returns the program's environment as "NAME=value" strings: the environment of this process, with
/// the variables that enable the parts and the address of the observer.
std::vector<std::string> environment_for(const Arguments& arguments,
                                         const std::vector<PlannedPart>& parts,
                                         const PartPaths& paths, const std::string& observer);

}  // namespace tensorpool::command::run
