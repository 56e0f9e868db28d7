#pragma once

#include <chrono>
#include <functional>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool::command {

/// Sleeps until `time`, or until the process has ended.
void pause_until(std::chrono::steady_clock::time_point time, const StatisticsReader& reader);

/// Calls `has_answered` every 2 ms until it returns true, the process has ended, or `patience` is
/// over. Returns what it returned last.
bool wait_for_answer(const StatisticsReader& process, std::chrono::nanoseconds patience,
                     const std::function<bool()>& has_answered);

}  // namespace tensorpool::command
