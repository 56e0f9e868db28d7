#pragma once

/// @file
/// The parsed command line, and the exit codes.

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorpool::command {

enum ExitCode : int {
    success = 0,
    finding = 1,      ///< a check failed, or the work could not be done
    wrong_usage = 2,  ///< wrong options, or an unsuitable terminal
    target_gone = 3,  ///< the process does not exist, or has ended
    unusable = 4,     ///< a model file is damaged or cannot be read
    // Of `run`, `profile` and `leaks`, as in env(1), nohup(1) and timeout(1):
    run_failed = 125,          ///< the program was not started
    cannot_run_program = 126,  ///< the program cannot be run
    no_such_program = 127,
};

/// The settings that all subcommands share. A chosen subcommand sets `run`.
struct Settings {
    std::uint64_t process = 0;  ///< --pid; 0: not given
    std::string name;           ///< --name; empty: not given
    bool json = false;
    bool bytes = false;  ///< print sizes as plain numbers of bytes
    bool wait = false;   ///< wait for a process of that name, and for the next one when it ends
    std::vector<std::string> program;  ///< of `run`, `profile`, `leaks`: the arguments after --
    bool lacks_program = false;        ///< nothing follows --
    std::function<int()> run;          ///< returns an ExitCode, and may throw CommandError
    /// What the manual page of a subcommand adds to its help. Empty lines separate paragraphs;
    /// lines that begin with two spaces are printed verbatim.
    std::map<std::string, std::string> details;
};

/// Ends the command with a message that says what to do next.
class CommandError : public std::runtime_error {
public:
    CommandError(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
    ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

}  // namespace tensorpool::command
