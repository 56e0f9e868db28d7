#pragma once

/// @file
/// Which process is meant, and the way to it.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// Those of this name, which the system may have cut to 15 bytes; without any, those whose name
/// holds it.
std::vector<ObservedProcess> find_by_name(const std::vector<ObservedProcess>& processes,
                                          std::string_view name);

/// The number of the one process meant by --pid, by --name, or by neither where there is only one.
/// Throws CommandError where there is none, or several.
std::uint64_t choose_process(const std::vector<ObservedProcess>& processes,
                             const Settings& settings);

/// The chosen process, once there is one where --wait was given. Throws CommandError.
StatisticsReader attach_chosen(const Settings& settings);

/// What to say, and how to end, when a process cannot be read.
CommandError to_command_error(const AttachError& error);

}  // namespace tensorpool::command
