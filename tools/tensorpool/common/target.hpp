#pragma once

/// @file
/// Chooses the process to read, attaches to it, and waits for it.

#include <chrono>
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

/// Sleeps until `time`, or until the process has ended.
void pause_until(std::chrono::steady_clock::time_point time, const StatisticsReader& reader);

/// Calls `has_answered` every 2 ms until it returns true, the process has ended, or `patience` is
/// over. Returns what it returned last.
bool wait_for_answer(const StatisticsReader& process, std::chrono::nanoseconds patience,
                     const std::function<bool()>& has_answered);

}  // namespace tensorpool::command
