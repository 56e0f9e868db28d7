#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "common/settings.hpp"
#include "run/signals.hpp"

namespace tensorpool::command::run {

/// The error for a program that does not exist.
CommandError no_such_program_error(const std::string& word);

/// The program, as a child of this process in the same process group, with its terminal and
/// streams. Signals from the terminal therefore reach it as if it ran alone.
class Program {
public:
    /// Starts the program. `restore` is called in the child and restores the signal masks and
    /// limits of the caller. Throws CommandError, with code 127 if the program does not exist and
    /// 126 if it cannot be run.
    Program(const std::vector<std::string>& command, std::vector<std::string> environment,
            const std::function<void()>& restore);

    pid_t process() const noexcept { return process_; }
    bool has_ended() const noexcept { return has_ended_; }
    /// The exit code of a program that has ended, or 0.
    int code() const noexcept { return code_; }
    /// The signal that ended it, or 0.
    int signal() const noexcept { return signal_; }

    /// Handles a signal to this process: passes it on, or checks the state of the program, and
    /// stops if the program has stopped.
    void take(const signalfd_siginfo& signal);

private:
    void look();
    bool is_stopped() const;
    void pass_on(const signalfd_siginfo& signal) const noexcept;

    pid_t process_ = -1;
    bool has_ended_ = false;
    bool stopped_too_ = false;  // the next SIGCONT is for this process
    int code_ = 0;
    int signal_ = 0;
};

}  // namespace tensorpool::command::run
