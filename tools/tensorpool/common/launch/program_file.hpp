#pragma once

#include <string>

namespace tensorpool::command::launch {

/// Returns the file that a command name means, searching PATH as execvp(3) does; "" if there is
/// none.
std::string find_program(const std::string& word);

/// Returns why the loader cannot preload our library into this program, as far as its file shows:
/// it is statically linked, runs with elevated privileges, or is for another processor type. For a
/// script, checks its interpreter. Returns "" if no obstacle was found.
std::string problem_of_preloading(const std::string& path);

}  // namespace tensorpool::command::launch
