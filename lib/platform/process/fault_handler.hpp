#pragma once

#include <cstdint>

namespace tensorpool::platform {

/// What a thread did when it faulted.
enum class FaultAccess : std::uint8_t { unknown, read, write };

/// Called for each fault of a thread that accessed `address`. It does not return if the fault is
/// its own to report. It runs in a signal handler.
using FaultFunction = void (*)(const void* address, FaultAccess access) noexcept;

/// Installs handlers for SIGSEGV and SIGBUS that call `function`, once per process. Faults for
/// which the function returns, and signals that another process or thread sent, are passed to the
/// actions that were there before, unchanged. Returns false if the system has no such signals or
/// refuses. The handlers run on the thread's alternative stack if it has one.
[[nodiscard]] bool handle_faults(FaultFunction function) noexcept;

}  // namespace tensorpool::platform
