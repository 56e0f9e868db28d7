#pragma once

#include <cstdint>

namespace tensorpool::watch {

/// Returns the mean distance in bytes between samples of the heap profile; 0 if none are taken.
/// Reads TENSORPOOL_PROFILE on the first call. Does not call malloc.
std::uint64_t profile_interval() noexcept;
/// Writes the interval to the segment, for readers. Called when a pool is made.
void show_profile_interval() noexcept;

}  // namespace tensorpool::watch
