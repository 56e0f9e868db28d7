#pragma once

#include <atomic>

namespace tensorpool::testing {

/// Moves the clock that does not stand still in sleep (CLOCK_MONOTONIC) ahead, for the library. The
/// linker leads its calls past here (--wrap); live_trace_linux_test.cpp has the function.
inline std::atomic<long> moved_seconds = 0;

}  // namespace tensorpool::testing
