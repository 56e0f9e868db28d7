#pragma once

#include <vector>

#include "top/top_screen.hpp"

namespace tensorpool::command {

/// Returns the list of the keys and of the columns.
std::vector<ScreenLine> help_screen();

}  // namespace tensorpool::command
