#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::device {

/// How often this process is the child of a fork that it knew of. What was made before the last one
/// is another process's: its locks may be held by threads that are not here, and its driver's state
/// is of no use. It is left alone. Relaxed: a child has one thread when it changes.
inline constinit std::atomic<std::uint64_t> forks_seen{0};

/// Whether what was made when that many were seen is this process's own.
inline bool is_ours(std::uint64_t forks) noexcept {
    return forks == forks_seen.load(std::memory_order_relaxed);
}

/// From now on forks are counted. Any thread; again is harmless.
void watch_forks() noexcept;

}  // namespace tensorpool::device
