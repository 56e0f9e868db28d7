#pragma once

#include <string>

namespace tensorpool::command::run {

/// The file that a command's first word means, as execvp(3) looks for it along PATH; "" where there
/// is none.
std::string find_program(const std::string& word);

/// Why the loader puts no library of ours into this program, as far as its file tells: it is
/// statically linked, runs with more rights than we have, or is for another kind of processor. Of a
/// script the interpreter is meant. "": nothing speaks against it.
std::string problem_of_preloading(const std::string& path);

}  // namespace tensorpool::command::run
