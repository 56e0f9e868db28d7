#pragma once

#include <chrono>

#include <tensorpool/statistics_reader.hpp>

namespace tensorpool::command {

/// Sleeps until `time`, or until the process has ended.
void pause_until(std::chrono::steady_clock::time_point time, const StatisticsReader& reader);

}  // namespace tensorpool::command
