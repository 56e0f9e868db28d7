#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::interpose {

inline constexpr std::size_t default_minimum_bytes = std::size_t{64} << 10;

/// Requests from this size on are the pool's. More than any request until this library's static
/// constructors have run: libraries that start before it stay with the next allocator, among them
/// the C++ library, which asks for 72,704 bytes in every program. Never 0: a request for nothing is
/// the next allocator's. Relaxed: set once, and either value is right meanwhile.
extern constinit std::atomic<std::size_t> minimum_bytes [[gnu::visibility("hidden")]];

inline bool is_for_pool(std::size_t bytes) noexcept {
#if defined(__x86_64__)
    // The line below in one instruction, which every call of malloc takes.
    bool is;
    asm volatile("cmpq %1, %2" : "=@ccae"(is) : "m"(minimum_bytes), "r"(bytes));
    return is;
#else
    return bytes >= minimum_bytes.load(std::memory_order_relaxed);
#endif
}

/// What TENSORPOOL_INTERPOSE_MIN says. A value that makes no sense is told on stderr.
std::size_t minimum_from_environment();

}  // namespace tensorpool::interpose
