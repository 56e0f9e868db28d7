#pragma once

/// @file
/// Runs a program beside the test, and reads its output as it arrives.

#include <sys/types.h>

#include <string>
#include <vector>

namespace tensorpool::command {

class StartedProgram {
public:
    /// Starts `path` with its arguments. Throws std::runtime_error.
    explicit StartedProgram(std::vector<std::string> arguments);
    /// Kills it if it still runs.
    ~StartedProgram();
    StartedProgram(const StartedProgram&) = delete;
    StartedProgram& operator=(const StartedProgram&) = delete;

    pid_t process() const noexcept { return process_; }
    void write_line(const std::string& line);
    /// Returns the next line of its standard output, without the newline; "" at its end, or after a
    /// minute.
    std::string read_line();
    void kill(int signal);
    /// Waits for the end, at most a minute. Returns the exit code, or -1 if a signal ended it.
    int wait();
    /// Returns what it wrote to standard error. To be called after its end.
    std::string errors() const;

private:
    pid_t process_ = -1;
    int input_ = -1;
    int output_ = -1;
    int errors_ = -1;
    std::string unread_;
};

}  // namespace tensorpool::command
