#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__linux__) && __has_include(<sys/sdt.h>)
#include <sys/sdt.h>
#define TENSORPOOL_HAS_PROBES 1
#else
#define TENSORPOOL_HAS_PROBES 0
#endif

/// The probe points of the provider `otel_memory`, by which other profilers follow the sampled
/// blocks (https://github.com/open-telemetry/opentelemetry-ebpf-profiler,
/// design-docs/00003-memory-profiling). A probe point is one instruction without effect, which a
/// profiler replaces while it watches. Without systemtap's header sys/sdt.h there are none.
namespace tensorpool::platform {

/// A sampled block was allocated, which counts as `weight` bytes.
[[gnu::always_inline]] inline void probe_allocation(
    [[maybe_unused]] const void* address, [[maybe_unused]] std::uint64_t bytes,
    [[maybe_unused]] std::uint64_t weight) noexcept {
#if TENSORPOOL_HAS_PROBES
    DTRACE_PROBE3(otel_memory, alloc, address, bytes, weight);
#endif
}

/// A sampled block is about to be freed.
[[gnu::always_inline]] inline void probe_free([[maybe_unused]] const void* address) noexcept {
#if TENSORPOOL_HAS_PROBES
    DTRACE_PROBE1(otel_memory, free, address);
#endif
}

/// Memory was taken from the system for use.
[[gnu::always_inline]] inline void probe_mapping([[maybe_unused]] const void* address,
                                                 [[maybe_unused]] std::uint64_t bytes) noexcept {
#if TENSORPOOL_HAS_PROBES
    DTRACE_PROBE2(otel_memory, mmap, address, bytes);
#endif
}

/// Memory was given back to the system. Some or all of it may not have been in use.
[[gnu::always_inline]] inline void probe_unmapping([[maybe_unused]] const void* address,
                                                   [[maybe_unused]] std::uint64_t bytes) noexcept {
#if TENSORPOOL_HAS_PROBES
    DTRACE_PROBE2(otel_memory, munmap, address, bytes);
#endif
}

}  // namespace tensorpool::platform
