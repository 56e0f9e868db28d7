#pragma once

namespace tensorpool::adaptors {

/// Why the last call of this thread through the C interface failed: the text that `set_last_error`
/// was given, begun with "tensorpool: function: " unless it begins with "tensorpool: " itself, and
/// cut to 1023 bytes. "" before the first. Valid until the next failure on this thread, or its end.
/// Where no memory can be had for the text, and in what runs late at a thread's end, it says only
/// that a call failed.
const char* last_error() noexcept;
void set_last_error(const char* function, const char* text) noexcept;

}  // namespace tensorpool::adaptors
