#pragma once

// gcc and clang check the arguments against the format.
#if defined(__GNUC__)
#define TENSORPOOL_PRINTF_LIKE __attribute__((format(printf, 1, 2)))
#else
#define TENSORPOOL_PRINTF_LIKE
#endif

namespace tensorpool::platform {

/// One line on stderr that begins with "tensorpool: ", then the process ends by abort. For misuse
/// after which no call of ours can be right. Allocates nothing.
[[noreturn]] TENSORPOOL_PRINTF_LIKE void fail(const char* format, ...) noexcept;

/// One line on stderr that begins with "tensorpool: ". Only for what the user asked to be told.
TENSORPOOL_PRINTF_LIKE void say(const char* format, ...) noexcept;

}  // namespace tensorpool::platform
