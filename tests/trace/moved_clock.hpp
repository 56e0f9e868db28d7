#pragma once

#include <atomic>

namespace tensorpool::testing {

/// Advances CLOCK_MONOTONIC for the library. The linker redirects its calls (--wrap);
/// live_trace_linux_test.cpp defines the function.
inline std::atomic<long> moved_seconds = 0;
/// The same for CLOCK_REALTIME.
inline std::atomic<long> moved_wall_seconds = 0;

}  // namespace tensorpool::testing
