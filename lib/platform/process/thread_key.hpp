#pragma once

namespace tensorpool::platform {

/// One of the few keys of the system under which each thread keeps a value.
using ThreadKey = unsigned long;

/// Makes a key. When a thread ends that holds a value under it, `run_exit_handler(value)` is called
/// on that thread. False when the system has no more keys.
[[nodiscard]] bool make_thread_key(ThreadKey& key) noexcept;
/// Sets the calling thread's value. False on failure.
[[nodiscard]] bool set_thread_key(ThreadKey key, void* value) noexcept;

/// What keys call; `value` is never nullptr. Defined in thread_exit.cpp.
void run_exit_handler(void* value) noexcept;

}  // namespace tensorpool::platform
