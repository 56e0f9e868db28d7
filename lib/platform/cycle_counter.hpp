#pragma once

/// A clock that costs a few nanoseconds where a call to the system's costs twenty. Between cores of
/// one machine it agrees (the kernel sees to it, or does not use it as its own clock either).

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#elif !defined(__aarch64__)
#include "platform/platform.hpp"
#endif

namespace tensorpool::platform {

/// Cycles of some constant frequency; its zero is anywhere.
inline std::uint64_t cycle_counter() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    return __rdtsc();
#elif defined(__aarch64__)
    std::uint64_t cycles;
    asm volatile("mrs %0, cntvct_el0" : "=r"(cycles));
    return cycles;
#else
    return monotonic_clock_ns();
#endif
}

/// The same, read after all that comes before it: what another thread saw to earlier has an earlier
/// time. Processors read a counter ahead of loads that they wait for (Intel's manual, RDTSC).
inline std::uint64_t ordered_cycle_counter() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
    return cycle_counter();
}

}  // namespace tensorpool::platform
