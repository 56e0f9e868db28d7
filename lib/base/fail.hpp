#pragma once

namespace tensorpool::base {

/// One line on stderr that begins with "tensorpool: ", then the process ends by abort. For misuse
/// after which no call of ours can be right. Allocates nothing.
[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char* format, ...) noexcept;

/// One line on stderr that begins with "tensorpool: ". Only for what the user asked to be told.
__attribute__((format(printf, 1, 2))) void say(const char* format, ...) noexcept;

}  // namespace tensorpool::base
