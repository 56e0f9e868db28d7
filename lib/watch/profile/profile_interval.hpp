#pragma once

#include <cstdint>

namespace tensorpool::watch {

/// Returns the mean distance in bytes between samples of the heap profile; 0 if none are taken.
/// Reads TENSORPOOL_PROFILE on the first call. Does not call malloc.
std::uint64_t profile_interval() noexcept;
/// Writes the interval to the segment, for readers. Called when a pool is made.
void show_profile_interval() noexcept;

/// A thread that takes no samples looks at the interval again after this many bytes.
inline constexpr std::int64_t profile_look_again_bytes = std::int64_t{64} << 20;

}  // namespace tensorpool::watch
