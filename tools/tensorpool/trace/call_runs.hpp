#pragma once

/// @file
/// Merges the calls of many rings, each ordered, into one sequence ordered by time.

#include <cstdint>
#include <deque>
#include <vector>

#include "trace/recording.hpp"

namespace tensorpool::command::trace {

/// The calls of one ring in pieces, so that each piece can be freed when it has been merged. Until
/// then, `Call::time_ns` holds cycles. No piece is empty.
using CallRuns = std::deque<std::vector<Call>>;

/// Merges by time; at equal times, in the order of the rings. Empties `rings` while merging, so
/// that memory holds at most one copy of all calls.
std::vector<Call> merge(std::vector<CallRuns> rings);

}  // namespace tensorpool::command::trace
