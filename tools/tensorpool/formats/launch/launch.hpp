#pragma once

/// @file
/// Runs a program with parts of tensorpool enabled in it, and follows its processes.

#include "common/settings.hpp"
#include "formats/launch/family.hpp"

namespace tensorpool::command::launch {

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
    Outcome run(Family::Looks looks, TraceOutput* recorder = nullptr,
                const Report& report = {}) const;

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
