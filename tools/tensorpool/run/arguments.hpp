#pragma once

#include <string>
#include <vector>

#include "common/settings.hpp"

namespace tensorpool::command::run {

/// The parsed command line of `run`.
struct Arguments {
    std::string limit;                 ///< a size; "": none
    std::string budget;                ///< a path; "": none
    std::string trace;                 ///< a path; "": no recording
    std::string stacks;                ///< a size; "": no stacks
    std::vector<std::string> with;     ///< names of parts, or none (parts.hpp)
    std::string interpose_min;         ///< a size; "": from the environment, or 64 KiB
    std::string report;                ///< a path, or none; "": standard error
    std::vector<std::string> program;  ///< the program and its arguments
};

/// Exit statuses that are not the program's own, as in env(1), nohup(1) and timeout(1).
inline constexpr auto run_failed = static_cast<ExitCode>(125);
inline constexpr int cannot_run_program = 126;
inline constexpr int no_such_program = 127;

}  // namespace tensorpool::command::run
