#pragma once

/// @file
/// What can be put under a program, and what of it is.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "run/places.hpp"

namespace tensorpool::command::run {

enum class Part { malloc, numpy, torch };
inline constexpr Part all_parts[] = {Part::malloc, Part::numpy, Part::torch};

/// As --with and the notes of processes name it: "malloc".
std::string_view name_of(Part part) noexcept;
/// As people do: "PyTorch".
std::string_view title_of(Part part) noexcept;

struct PlannedPart {
    Part part;
    std::string problem;  ///< why it cannot be put under the program; "": it is
    bool is_put() const noexcept { return problem.empty(); }
};

/// Those that are wanted: what `with` names, or all where it names nothing, or none for "none".
/// Throws CommandError where one that was named cannot be, or there is none of that name.
/// `program`: the file that will run; "": not known.
std::vector<PlannedPart> plan_parts(const std::vector<std::string>& with, const Places& places,
                                    const std::string& program);

bool is_put(const std::vector<PlannedPart>& parts, Part part) noexcept;

}  // namespace tensorpool::command::run
