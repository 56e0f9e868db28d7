#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <vector>

#include "run/descriptor.hpp"

namespace tensorpool::command::run {

/// Receives the signals of this process through a descriptor, except those of its own faults.
/// Construct it before starting the program; `restore` gives the program the caller's signal state.
class Signals {
public:
    /// Throws CommandError.
    Signals();
    /// Drops pending signals, and restores the former handling.
    ~Signals();
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int descriptor() const noexcept { return descriptor_.number(); }
    /// Returns the signals that arrived since the last call.
    std::vector<signalfd_siginfo> take() const;
    /// Restores the former signal state. To be called in the child.
    void restore() const noexcept;

private:
    sigset_t before_{};
    struct sigaction child_before_ {};
    Descriptor descriptor_;
};

/// Whether a process sent the signal, by kill(2) or similar. Signals of the terminal and the kernel
/// reach the whole process group, and therefore the program itself.
bool is_from_process(const signalfd_siginfo& signal) noexcept;
/// Whether the kernel sent it to this process alone: the hangup of the terminal, which the first
/// process of a session must pass on, or an alarm that was set before this process executed
/// tensorpool (execve(2)).
bool is_systems_to_us(const signalfd_siginfo& signal) noexcept;

/// Performs the default action of the signal, which ends the process or stops it for a while.
void take_effect(int signal) noexcept;
/// Disables core dumps of this process, so that it does not overwrite the program's.
void leave_no_core() noexcept;

}  // namespace tensorpool::command::run
