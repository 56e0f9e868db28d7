#pragma once

/// @file
/// Measures the cost of touching a page for the first time.

#include <cstdint>

namespace tensorpool::command {

/// Returns the nanoseconds of CPU time per 4 KiB touched for the first time, in pages of
/// `folio_bytes` if the kernel provides them to memory advised with MADV_HUGEPAGE. `folio_bytes` 0
/// measures ordinary pages. The result is the median of several rounds, or 0 if no memory could be
/// mapped.
double measure_first_touch_ns(std::uint64_t folio_bytes);

}  // namespace tensorpool::command
