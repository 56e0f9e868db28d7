#pragma once

#include <cstddef>

#include "platform/platform.hpp"

namespace tensorpool::platform {

/// Gets each page by a write that changes nothing, also while other threads write there.
inline void touch_pages(void* address, std::size_t bytes) noexcept {
    // A zero that the compiler cannot see. Of a known one clang 14 makes a fence without any
    // access, even where the memory is volatile.
    const volatile unsigned char nothing = 0;
    auto* const begin = static_cast<unsigned char*>(address);
    for (std::size_t at = 0; at < bytes; at += page_bytes()) {
        // Relaxed: it orders nothing; what counts is that no other write is lost.
        // (The builtin, because libc++ has had std::atomic_ref only since version 19.)
        __atomic_fetch_or(begin + at, nothing, __ATOMIC_RELAXED);
    }
}

}  // namespace tensorpool::platform
