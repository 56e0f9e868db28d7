#pragma once

/// @file
/// Runs a program with parts of tensorpool enabled in it, and follows its processes.

#include <sys/signalfd.h>
#include <sys/types.h>

#include "common/launch/family.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::launch {

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

struct Arguments {
    std::vector<std::string> program;    ///< the program and its arguments
    std::vector<std::string> with = {};  ///< names of parts, or none
    std::string limit = {};              ///< a size; "": none
    std::string budget = {};             ///< a path; "": none
    std::string stacks = {};             ///< a size; "": no stacks
    std::string interpose_min = {};      ///< a size; "": from the environment, or 64 KiB
    bool is_recorded = false;
};

struct Outcome {
    int code = 0;    ///< its exit code
    int signal = 0;  ///< the signal that ended it; 0: none
    double user_seconds = 0;
    double system_seconds = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t peak_resident_bytes = 0;  ///< of the process with the largest peak
};

class Launch {
public:
    /// `arguments` must outlive this object. Throws CommandError if the program does not exist, or
    /// if something that the arguments name is unavailable.
    explicit Launch(const Arguments& arguments);

    const std::vector<PlannedPart>& parts() const noexcept { return parts_; }

    using Report = std::function<void(const Outcome&, const Results&)>;
    /// Runs the program. `looks` are called for each of its processes that used a pool. `report` is
    /// called when the program has ended, while signals to this process are still held back.
    /// `recorder` may be nullptr. Throws CommandError if the program cannot be started.
    Outcome run(Family::Looks looks, Recorder* recorder = nullptr, const Report& report = {}) const;

private:
    const Arguments& arguments_;
    std::string file_;
    PartPaths paths_;
    std::vector<PlannedPart> parts_;
};

/// Returns the program's exit code. If a signal ended the program, the same signal ends this
/// process.
int end_like(const Outcome& outcome);

}  // namespace tensorpool::command::launch
