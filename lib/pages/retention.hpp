#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// Decides how much free memory goes back: over each period the least that was free at any moment
/// is what nobody needed for the whole of it, whatever was split and joined meanwhile. Not
/// thread-safe, but for `period`.
class Retention {
public:
    /// Periods of 0 ns end at every look.
    void begin(std::uint64_t now_ns, std::uint64_t period_ns, std::size_t free_bytes) noexcept {
        ends_ns_ = now_ns + period_ns;
        min_free_ = free_bytes;
        period_.fetch_add(1, std::memory_order_relaxed);
    }
    bool ended(std::uint64_t now_ns) const noexcept { return now_ns >= ends_ns_; }
    void saw_free(std::size_t free_bytes) noexcept { min_free_ = std::min(min_free_, free_bytes); }
    /// Bytes that were free all through the period.
    std::size_t unneeded() const noexcept { return min_free_; }
    std::uint32_t period() const noexcept { return period_.load(std::memory_order_relaxed); }

private:
    std::uint64_t ends_ns_ = 0;
    std::size_t min_free_ = 0;
    // Relaxed: a stamp on freed blocks, which orders nothing.
    std::atomic<std::uint32_t> period_ = 0;
};

}  // namespace tensorpool::pages
