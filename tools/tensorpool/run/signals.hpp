#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <vector>

#include "run/descriptor.hpp"

namespace tensorpool::command::run {

/// The signals that this process gets, as something to wait for: all but those that tell of its own
/// faults. Made before the program, which begins with what was in force before.
class Signals {
public:
    /// Throws CommandError.
    Signals();
    /// What came meanwhile is dropped, and signals do again what they did.
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int descriptor() const noexcept { return descriptor_.number(); }
    /// Those that came since the last call.
    std::vector<signalfd_siginfo> take() const;
    /// In the child: as it was before.
    void restore() const noexcept;

private:
    sigset_t before_{};
    struct sigaction child_before_ {};
    Descriptor descriptor_;
};

/// Whether a signal came from a process by kill(2) or its like. Those of the terminal and the
/// system reach the whole group of processes, and so the program itself.
bool is_from_process(const signalfd_siginfo& signal) noexcept;
/// Whether the system sent it to this process alone: that the terminal has gone, which the first
/// process of a session is to pass on, or an alarm that was set before this process ran tensorpool
/// (execve(2)).
bool is_systems_to_us(const signalfd_siginfo& signal) noexcept;

/// As that signal's own effect, which is to end the process or to stop it for a while.
void take_effect(int signal) noexcept;
/// The one that the program left is not to be written over.
void leave_no_core() noexcept;

}  // namespace tensorpool::command::run
