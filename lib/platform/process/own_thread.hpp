#pragma once

/// @file
/// The one thread that the library may start for itself, and how it waits.

#include <atomic>
#include <cstdint>

namespace tensorpool::platform {

/// A thread that was started; 0: none.
struct OwnThread {
    std::uintptr_t handle = 0;
    explicit operator bool() const noexcept { return handle != 0; }
};

/// Starts a thread with this name (15 characters at most), at the lowest priority, on which no
/// signal is handled and which is not cancelled. No thread where the system refuses, or has none of
/// this. The C library may call `malloc` for it: the caller holds no lock that a `malloc` takes.
[[nodiscard]] OwnThread start_own_thread(const char* name, void (*run)()) noexcept;
/// Waits for the end of that thread, which is not the calling one.
void join_own_thread(OwnThread thread) noexcept;

/// Without a limit of time.
inline constexpr std::uint64_t no_timeout = UINT64_MAX;
/// Sleeps while `word` is `seen`, until `wake_waiter` or so many nanoseconds later. It may return
/// earlier. The word may lie in memory that processes share.
void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
             std::uint64_t timeout_ns) noexcept;
/// Changes the word and wakes the thread that waits on it.
void wake_waiter(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace tensorpool::platform
