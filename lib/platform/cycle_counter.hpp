#pragma once

/// A clock that takes a few nanoseconds to read, where a call of the system's clock takes twenty.
/// The cores of one machine agree on it: the kernel synchronizes the counter, or does not use it as
/// its own clock.

#include <cstdint>

#if defined(__x86_64__) || defined(__i386__)
#include <x86intrin.h>
#elif !defined(__aarch64__)
#include "platform/platform.hpp"
#endif

namespace tensorpool::platform {

/// Returns the cycle counter. Its frequency is constant; its zero is arbitrary.
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

/// Returns the cycle counter, read after all preceding loads. An event that another thread made
/// visible earlier therefore has an earlier time. Without this, processors may read the counter
/// ahead of loads that they wait for (Intel's manual, RDTSC).
inline std::uint64_t ordered_cycle_counter() noexcept {
#if defined(__x86_64__) || defined(__i386__)
    _mm_lfence();
#elif defined(__aarch64__)
    asm volatile("isb" ::: "memory");
#endif
    return cycle_counter();
}

}  // namespace tensorpool::platform
