#pragma once

#include "platform/platform.hpp"

namespace tensorpool::platform {

/// Touches each page with a write that does not change it. Safe while other threads write to the
/// same pages. AddressSanitizer may take free pages for inaccessible.
[[gnu::no_sanitize_address]] inline void touch_pages(void* address, std::size_t bytes) noexcept {
    // A zero that the compiler cannot see. With a known zero, clang 14 emits a fence without any
    // access, even if the memory is volatile.
    const volatile unsigned char nothing = 0;
    auto* const begin = static_cast<unsigned char*>(address);
    for (std::size_t at = 0; at < bytes; at += page_bytes()) {
        // Relaxed: the access orders nothing. It is atomic only so that writes of other threads are
        // not lost. (The builtin is used because libc++ has had std::atomic_ref only since version
        // 19.)
        __atomic_fetch_or(begin + at, nothing, __ATOMIC_RELAXED);
    }
}

}  // namespace tensorpool::platform
