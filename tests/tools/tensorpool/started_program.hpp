#pragma once

/// @file
/// A program that runs beside the test: its output is read as it comes.

#include <sys/types.h>

#include <string>
#include <vector>

namespace tensorpool::command {

class StartedProgram {
public:
    /// `path` and its arguments. Throws std::runtime_error.
    explicit StartedProgram(std::vector<std::string> words);
    /// Kills it if it still runs.
    ~StartedProgram();
    StartedProgram(const StartedProgram&) = delete;
    StartedProgram& operator=(const StartedProgram&) = delete;

    pid_t process() const noexcept { return process_; }
    void write_line(const std::string& line);
    /// The next line of its standard output, without the end; "" at its end, or after a minute.
    std::string read_line();
    void kill(int signal);
    /// Waits for the end: its exit code, or -1 where a signal ended it. A minute at most.
    int wait();
    /// What it wrote to its standard error; after the end.
    std::string errors() const;

private:
    pid_t process_ = -1;
    int input_ = -1;
    int output_ = -1;
    int errors_ = -1;
    std::string unread_;
};

}  // namespace tensorpool::command
