#pragma once

#include <string>
#include <vector>

#include "run/parts.hpp"
#include "run/words.hpp"

namespace tensorpool::command::run {

/// The program's environment, "NAME=value" each: that of this process, with what puts the parts
/// under the program and tells it where we listen.
std::vector<std::string> environment_for(const Words& words, const std::vector<PlannedPart>& parts,
                                         const Places& places, const std::string& observer);

}  // namespace tensorpool::command::run
