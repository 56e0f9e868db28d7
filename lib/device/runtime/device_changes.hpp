#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::device {

/// Grows whenever devices may have come or gone: what a thread knows of its current device holds as
/// long as this stays. Not 0, which a thread that knows nothing has.
inline constinit std::atomic<std::uint32_t> device_changes{1};

/// Release: pairs with the acquire of threads that look at it, so that the change is seen.
inline void note_device_change() noexcept {
    device_changes.fetch_add(1, std::memory_order_release);
}

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
