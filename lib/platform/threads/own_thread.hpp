#pragma once

/// @file
/// The threads that the library may start for itself, and how such a thread waits.

#include <atomic>
#include <cstdint>

namespace tensorpool::platform {

/// A thread that was started; `handle` is 0 if there is none.
struct OwnThread {
    std::uintptr_t handle = 0;
    explicit operator bool() const noexcept { return handle != 0; }
};

/// The priority of a thread: the lowest, or that of the thread that starts it.
enum class Priority : bool { lowest, same };
/// Starts a thread with this name (at most 15 characters). It handles no signals and is not
/// cancelled. Returns an empty handle if the system refuses or does not support this. The C library
/// may call `malloc` for the thread, so the caller must hold no lock that `malloc` may take.
[[nodiscard]] OwnThread start_own_thread(const char* name, void (*run)(),
                                         Priority priority = Priority::lowest) noexcept;
/// Waits for the end of the thread. REQUIRES: it is not the calling thread.
void join_own_thread(OwnThread thread) noexcept;
/// Lets the system free the thread when it ends. It is not joined then.
void detach_own_thread(OwnThread thread) noexcept;

/// No time limit.
inline constexpr std::uint64_t no_timeout = UINT64_MAX;
/// Sleeps while `word` is `seen`, until `wake_waiter` is called or `timeout_ns` nanoseconds have
/// passed. It may return earlier. The word may be in memory shared between processes.
void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
             std::uint64_t timeout_ns) noexcept;
/// Changes the word and wakes the thread that waits on it.
void wake_waiter(std::atomic<std::uint32_t>& word) noexcept;

}  // namespace tensorpool::platform
