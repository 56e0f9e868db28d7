#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "common/settings.hpp"
#include "run/signals.hpp"

namespace tensorpool::command::run {

/// What is said where there is no such program.
CommandError no_such_program_error(const std::string& word);

/// The program, a child of this process in the same group of processes, with its terminal and
/// streams, so that what the terminal sends reaches it as if it ran alone.
class Program {
public:
    /// `restore` is called in the child, and makes it what this process was. Throws CommandError,
    /// with 127 where there is no such program and 126 where it cannot be run.
    Program(const std::vector<std::string>& words, std::vector<std::string> environment,
            const std::function<void()>& restore);

    pid_t process() const noexcept { return process_; }
    bool has_ended() const noexcept { return has_ended_; }
    /// Of one that ended: its exit code, or 0.
    int code() const noexcept { return code_; }
    /// The signal that ended it, or 0.
    int signal() const noexcept { return signal_; }

    /// Does what a signal to this process calls for: passes it on, or sees what became of the
    /// program and stops as it did.
    void take(const signalfd_siginfo& signal);

private:
    void look();
    bool is_stopped() const;
    void pass_on(const signalfd_siginfo& signal) const noexcept;

    pid_t process_ = -1;
    bool has_ended_ = false;
    bool stopped_too_ = false;  // so the next SIGCONT was sent for that
    int code_ = 0;
    int signal_ = 0;
};

}  // namespace tensorpool::command::run
