#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::device {

/// Incremented whenever devices may have been added or removed, or a runtime was made. A thread's
/// cached current device is valid as long as this is unchanged. Never 0, which means that a thread
/// has cached nothing.
inline constinit std::atomic<std::uint32_t> device_changes{1};

/// Release: pairs with the acquire of threads that read the counter, so that they see the change.
inline void note_device_change() noexcept {
    device_changes.fetch_add(1, std::memory_order_release);
}

/// The number of forks between the first process and this one, as far as they were observed. State
/// made before the last fork belongs to another process: threads that do not exist here may hold
/// its locks, and the driver's state is unusable. Such state is not touched. Relaxed: when the
/// value changes, the child has one thread.
inline constinit std::atomic<std::uint64_t> forks_seen{0};

/// Whether state that was made at this value of `forks_seen` belongs to this process.
inline bool is_ours(std::uint64_t forks) noexcept {
    return forks == forks_seen.load(std::memory_order_relaxed);
}

/// Starts counting forks. Any thread; further calls have no effect.
void watch_forks() noexcept;

}  // namespace tensorpool::device
