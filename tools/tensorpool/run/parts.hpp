#pragma once

/// @file
/// The parts that `run` can enable in a program, and the selection of those to enable.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "run/part_paths.hpp"

namespace tensorpool::command::run {

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

}  // namespace tensorpool::command::run
