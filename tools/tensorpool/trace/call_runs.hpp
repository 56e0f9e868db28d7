#pragma once

/// @file
/// Calls of many rings, each in its order, brought into one order of time.

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::trace {

/// What one ring brought, piece by piece, so that each piece can be given back when it is merged.
/// Until then `Call::time_ns` holds cycles. No piece is empty.
using CallRuns = std::deque<std::vector<Call>>;

/// By time; where it is the same those of the first ring first. Empties `rings` as it goes, so that
/// no more than one copy of all calls is in memory.
std::vector<Call> merge(std::vector<CallRuns> rings);

}  // namespace tensorpool::command::trace
