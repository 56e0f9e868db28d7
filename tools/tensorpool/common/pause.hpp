#pragma once

#include <chrono>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool::command {

/// Sleeps until `time`, but no longer than the process runs.
void pause_until(std::chrono::steady_clock::time_point time, const StatisticsReader& reader);

}  // namespace tensorpool::command
