#pragma once

/// @file
/// The parts that `run` can enable in a program, and the selection of those to enable.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::command::launch {

/// Returns the file that a command name means, searching PATH as execvp(3) does; "" if there is
/// none.
std::string find_program(const std::string& word);

/// Returns why the loader cannot preload our library into this program, as far as its file shows:
/// it is statically linked, runs with elevated privileges, or is for another processor type. For a
/// script, checks its interpreter. Returns "" if no obstacle was found.
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
/// Returns the paths for a command in `folder`.
PartPaths part_paths_beside(const std::filesystem::path& folder);

enum class Part { malloc, numpy, torch, holders, profile };
inline constexpr Part all_parts[] = {Part::malloc, Part::numpy, Part::torch, Part::holders,
                                     Part::profile};

/// The name in --with and in the notes of processes: "malloc".
std::string_view name_of(Part part) noexcept;
/// The name for people: "PyTorch".
std::string_view title_of(Part part) noexcept;

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

}  // namespace tensorpool::command::launch
