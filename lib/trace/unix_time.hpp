#pragma once

#include <atomic>
#include <cstdint>

#include "platform/platform.hpp"

namespace tensorpool::trace {

/// Returns nanoseconds since 1970 UTC by a clock that never jumps: the monotonic clock, which is
/// set by the wall clock at the first call in the process. Readers compute the length of a cycle
/// from two such times, so an adjusted wall clock must not lie between them.
inline std::uint64_t steady_unix_ns() noexcept {
    static constinit std::atomic<std::uint64_t> offset = 0;
    const std::uint64_t now = platform::monotonic_clock_ns();
    // Relaxed: the number is all there is. The first thread sets it.
    std::uint64_t known = offset.load(std::memory_order_relaxed);
    if (known == 0) {
        const std::uint64_t mine = platform::wall_clock_ns() - now;
        if (offset.compare_exchange_strong(known, mine, std::memory_order_relaxed)) known = mine;
    }
    return now + known;
}

}  // namespace tensorpool::trace
