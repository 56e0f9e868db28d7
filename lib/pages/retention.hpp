#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// Decides how much free memory is given back. The minimum of the free bytes over a period is the
/// amount that was not needed during all of it, however extents were split and joined. Not
/// thread-safe, except for `period`.
class Retention {
public:
    /// Begins a period. A period of 0 ns has ended at every later call of `ended`.
    void begin(std::uint64_t now_ns, std::uint64_t period_ns, std::size_t free_bytes) noexcept {
        ends_ns_ = now_ns + period_ns;
        min_free_ = free_bytes;
        period_.fetch_add(1, std::memory_order_relaxed);
    }
    bool ended(std::uint64_t now_ns) const noexcept { return now_ns >= ends_ns_; }
    void saw_free(std::size_t free_bytes) noexcept { min_free_ = std::min(min_free_, free_bytes); }
    /// The bytes that were free during the whole period.
    std::size_t unneeded() const noexcept { return min_free_; }
    std::uint32_t period() const noexcept { return period_.load(std::memory_order_relaxed); }

private:
    std::uint64_t ends_ns_ = 0;
    std::size_t min_free_ = 0;
    // Relaxed: freed blocks are stamped with it, which orders nothing.
    std::atomic<std::uint32_t> period_ = 0;
};

}  // namespace tensorpool::pages
