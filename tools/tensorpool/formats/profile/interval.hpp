#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool::command::profile {

/// Parses "off", "all", or a size from 1 KiB to 1 TiB: values of TENSORPOOL_PROFILE. Returns the
/// mean distance between samples in bytes, 0 for none, 1 for all; nothing for other texts.
std::optional<std::uint64_t> parse_interval(std::string_view text);

/// A validator for CLI11: returns why the text is not a distance, or "".
std::string problem_of_interval(const std::string& text);

/// Makes the process sample at this distance. Returns a sentence that says so. Throws CommandError
/// if the process does not do so within three seconds.
std::string change_interval(StatisticsReader& process, std::uint64_t bytes);

/// Makes a process that takes no samples take them, one in 512 KiB. Returns sentences that say so.
/// Throws like `change_interval`.
std::string turn_on(StatisticsReader& process);

}  // namespace tensorpool::command::profile
