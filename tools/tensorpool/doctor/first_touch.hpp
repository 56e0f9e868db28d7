#pragma once

/// @file
/// What a page costs when it is touched for the first time.

#include <cstdint>

namespace tensorpool::command {

/// Nanoseconds of processor time for each 4 KiB that are touched for the first time, in pages of
/// `folio_bytes`, where the kernel gives such to memory that asks; 0: in the usual pages. The
/// median of several rounds; 0 where there is no memory to try it with.
double measure_first_touch_ns(std::uint64_t folio_bytes);

}  // namespace tensorpool::command
