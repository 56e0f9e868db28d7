#pragma once

/// @file
/// Runs a program with parts of tensorpool enabled in it, and follows its processes.

#include <filesystem>

#include "formats/launch/family.hpp"

namespace tensorpool::command::launch {

/// Returns the file that a command name means, searching PATH as execvp(3) does; "" if there is
/// none.
std::string find_program(const std::string& word);

/// Returns why the loader cannot preload our library into this program, as far as its file shows:
/// it is statically linked, runs with elevated privileges, is for another processor type or C
/// library, or has a sanitizer's malloc. For a script, checks its interpreter. Returns "" if no
/// obstacle was found.
std::string problem_of_preloading(const std::string& path);

/// The paths of the files that enable the parts. Files may be missing.
struct PartPaths {
    std::filesystem::path interposer;   ///< libtensorpool_interpose.so
    std::filesystem::path torch;        ///< libtensorpool_torch.so
    std::filesystem::path package;      ///< the folder of the Python package
    std::filesystem::path site_folder;  ///< contains our sitecustomize.py
};

/// Finds the files relative to this command: in an installed tree, which may have been moved, or in
/// the build folder that built it.
PartPaths find_part_paths();
PartPaths part_paths_beside(const std::filesystem::path& folder);

struct PlannedPart {
    Part part;
    std::string problem;  ///< why it cannot be enabled; "": it is enabled
    bool is_put() const noexcept { return problem.empty(); }
};

/// Selects the parts: those that `with` names, or none for "none". If it names none of malloc,
/// numpy and torch, all of these are selected; holders and profile are only if they are named.
/// Throws CommandError if a named part cannot be enabled or does not exist. `program` is the file
/// that will run; "": unknown.
std::vector<PlannedPart> plan_parts(const std::vector<std::string>& with, const PartPaths& paths,
                                    const std::string& program);

bool is_put(const std::vector<PlannedPart>& parts, Part part) noexcept;

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
