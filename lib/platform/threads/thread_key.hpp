#pragma once

namespace tensorpool::platform {

/// A key of the system under which each thread stores a value. The system has few keys.
using ThreadKey = unsigned long;

/// Makes a key. When a thread that has a value under the key ends, `run_exit_handler(value)` is
/// called on that thread. Returns false if the system has no more keys.
[[nodiscard]] bool make_thread_key(ThreadKey& key) noexcept;
/// Sets the calling thread's value. Returns false on failure.
[[nodiscard]] bool set_thread_key(ThreadKey key, void* value) noexcept;

/// Called for each key of an ending thread; `value` is never nullptr. Defined in thread_exit.cpp.
void run_exit_handler(void* value) noexcept;

}  // namespace tensorpool::platform
