#pragma once

/// @file
/// What the words of the command line come to, and how a subcommand ends.

#include <cstdint>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace tensorpool::command {

/// Exit status of the program.
enum ExitCode : int {
    success = 0,
    finding = 1,      ///< something is wrong with what was looked at, or could not be done
    wrong_usage = 2,  ///< of options, or of the terminal
    target_gone = 3,  ///< the process to look at is not there, or no longer
    unusable = 4,     ///< a model's file is damaged, or cannot be read
};

/// What all subcommands share. Each sets `run` when it was chosen.
struct Settings {
    std::uint64_t process = 0;  ///< --pid; 0: not given
    std::string name;           ///< --name; empty: not given
    bool json = false;
    bool bytes = false;  ///< sizes as plain numbers of bytes
    bool wait = false;   ///< for a process of that name, and for the next one when it ends
    std::vector<std::string> program;  ///< of `run`: what stands after --
    std::function<int()> run;          ///< returns an ExitCode, and may throw CommandError
    /// What the manual says of a subcommand beyond its help: paragraphs between empty lines, and
    /// lines that begin with two spaces as they are.
    std::map<std::string, std::string> details;
};

/// Ends the program with a message for people, which says what to do next.
class CommandError : public std::runtime_error {
public:
    CommandError(ExitCode code, const std::string& what) : std::runtime_error(what), code_(code) {}
    ExitCode code() const noexcept { return code_; }

private:
    ExitCode code_;
};

}  // namespace tensorpool::command
