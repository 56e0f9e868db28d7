#pragma once

/// @file
/// Chooses the process to read, and attaches to it.

#include <optional>

#include <tensorpool/statistics_reader.hpp>

#include "common/settings.hpp"

namespace tensorpool::command {

/// Returns the processes of this name, which the kernel may have cut to 15 bytes. If there are
/// none, returns those whose name contains it.
std::vector<ObservedProcess> find_by_name(const std::vector<ObservedProcess>& processes,
                                          std::string_view name);

/// Returns the id of the process given by --pid or --name, or of the only process if neither was
/// given. Throws CommandError if there is none, or more than one.
std::uint64_t choose_process(const std::vector<ObservedProcess>& processes,
                             const Settings& settings);

/// Attaches to the chosen process. With --wait, waits until it exists. Throws CommandError.
StatisticsReader attach_chosen(const Settings& settings);

/// Converts a failure to attach to a message and an exit code.
CommandError to_command_error(const AttachError& error);

}  // namespace tensorpool::command
