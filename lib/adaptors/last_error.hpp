#pragma once

namespace tensorpool::adaptors {

/// Returns why the last failed call of this thread through the C interface failed; "" before the
/// first. The text is valid until the next failure on this thread, or the thread's end. If there is
/// no memory for it, and in destructors that run late at a thread's end, it says only that a call
/// failed.
const char* last_error() noexcept;
/// Sets this thread's last error: `text`, prefixed with "tensorpool: function: " unless it begins
/// with "tensorpool: ", and cut to 1023 bytes.
void set_last_error(const char* function, const char* text) noexcept;

}  // namespace tensorpool::adaptors
