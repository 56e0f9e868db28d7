#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::interpose {

inline constexpr std::size_t default_minimum_bytes = std::size_t{64} << 10;

/// Requests of at least this size go to the pool. Until the static constructors of this library
/// have run, it is larger than any request: libraries that start earlier stay with the next
/// allocator. One of them is the C++ library, which requests 72,704 bytes in every program. It is 0
/// only with Checks::hardened: otherwise a request for 0 bytes goes to the next allocator. Relaxed:
/// it is set once, and both values are correct until then.
extern constinit std::atomic<std::size_t> minimum_bytes [[gnu::visibility("hidden")]];

inline bool is_for_pool(std::size_t bytes) noexcept {
#if defined(__x86_64__)
    // One instruction for the line below; every call of malloc executes it.
    bool is;
    asm volatile("cmpq %1, %2" : "=@ccae"(is) : "m"(minimum_bytes), "r"(bytes));
    return is;
#else
    return bytes >= minimum_bytes.load(std::memory_order_relaxed);
#endif
}

/// Returns the value of TENSORPOOL_INTERPOSE_MIN, in bytes, or 0 if it is 1 and TENSORPOOL_CHECKS
/// is `hardened`. Reports an invalid value on stderr.
std::size_t minimum_from_environment();

/// Whether the pool has Checks::hardened. Relaxed: it is set before the minimum, which lets the
/// pool serve requests.
extern constinit std::atomic<bool> hardened [[gnu::visibility("hidden")]];

inline bool is_hardened() noexcept {
    return hardened.load(std::memory_order_relaxed);
}
/// Reads TENSORPOOL_CHECKS.
bool is_hardened_by_environment() noexcept;

}  // namespace tensorpool::interpose
