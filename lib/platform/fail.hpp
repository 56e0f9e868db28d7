#pragma once

// gcc and clang check the arguments against the format.
#if defined(__GNUC__)
#define TENSORPOOL_PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#else
#define TENSORPOOL_PRINTF_LIKE
#endif

namespace tensorpool::platform {

/// Writes one line to stderr that begins with "tensorpool: ", then aborts the process. For misuse
/// after which no further call of the library can be correct. Allocates nothing.
[[noreturn]] TENSORPOOL_PRINTF_LIKE void fail(const char* format, ...) noexcept;

/// Writes one line to stderr that begins with "tensorpool: ". Used only for output that the user
/// requested.
TENSORPOOL_PRINTF_LIKE void say(const char* format, ...) noexcept;

}  // namespace tensorpool::platform
