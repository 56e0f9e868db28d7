#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>

namespace tensorpool::detail {
inline namespace abi_2 {

/// Decides when it is worth a look whether memory is so short that a pool should offer its free
/// memory to the system: whenever an eighth of it, at least 4 MiB, was freed since the last look,
/// and it is at least a 64th of the memory that the process may have. Thread-safe.
class OfferPace {
public:
    static constexpr std::size_t min_bytes = std::size_t{4} << 20;

    /// Returns whether a look is due with `bytes` free bytes that are not offered, in a process
    /// that may have `max_bytes`.
    bool is_due(std::size_t bytes, std::size_t max_bytes) noexcept {
        const std::size_t lowest = lowest_.load(std::memory_order_relaxed);
        if (bytes < lowest) lowest_.store(bytes, std::memory_order_relaxed);
        return bytes >= lowest + std::max(min_bytes, bytes / 8) && bytes >= max_bytes / 64;
    }
    /// Notes a look.
    void begin_again(std::size_t bytes) noexcept {
        lowest_.store(bytes, std::memory_order_relaxed);
    }

private:
    // The lowest number of bytes since the last look. Relaxed: if a thread's store is lost, a look
    // is made earlier or later.
    std::atomic<std::size_t> lowest_ = 0;
};

}  // namespace abi_2
}  // namespace tensorpool::detail
