#pragma once

#include <chrono>

#include <tensorpool/statistics_reader.hpp>

#include "formats/holders/answer.hpp"

namespace tensorpool::command::holders {

/// Asks a process what refers to its largest arrays, and waits for the answer. Throws CommandError
/// if there is none in this time, and AttachError.
Answer ask(const StatisticsReader& process, std::chrono::nanoseconds patience);

}  // namespace tensorpool::command::holders
