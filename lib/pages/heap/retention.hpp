#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::pages {

/// Decides how much free memory is given back. The minimum of the free bytes over a period is the
/// amount that was not needed during all of it, however extents were split and joined. A clock that
/// goes back by a period ends it: otherwise free memory would be kept until the clock has caught
/// up. `begin` is called by one thread at a time; all else is thread-safe.
class Retention {
public:
    /// Begins a period. A period of 0 ns has ended at every later call of `ended`.
    void begin(std::uint64_t now_ns, std::uint64_t period_ns, std::size_t free_bytes) noexcept {
        min_free_.store(free_bytes, std::memory_order_relaxed);
        begun_ns_.store(now_ns, std::memory_order_relaxed);
        period_ns_.store(period_ns, std::memory_order_relaxed);
        period_.fetch_add(1, std::memory_order_relaxed);
    }
    bool ended(std::uint64_t now_ns) const noexcept {
        // Another thread may just have begun a period at a later time than this thread's.
        const std::uint64_t begun_ns = begun_ns_.load(std::memory_order_relaxed);
        const std::uint64_t away_ns = now_ns < begun_ns ? begun_ns - now_ns : now_ns - begun_ns;
        return away_ns >= period_ns_.load(std::memory_order_relaxed);
    }
    /// If two threads call it at once, the lower of their values may be lost. Then more is given
    /// back than was free during the whole period, and has to be committed again.
    void saw_free(std::size_t free_bytes) noexcept {
        if (free_bytes >= unneeded()) return;
        min_free_.store(free_bytes, std::memory_order_relaxed);
    }
    /// The bytes that were free during the whole period.
    std::size_t unneeded() const noexcept { return min_free_.load(std::memory_order_relaxed); }
    std::uint32_t period() const noexcept { return period_.load(std::memory_order_relaxed); }

private:
    // Relaxed, all four: they are heuristics and order nothing.
    std::atomic<std::uint64_t> begun_ns_ = 0;
    std::atomic<std::uint64_t> period_ns_ = 0;
    std::atomic<std::size_t> min_free_ = 0;
    std::atomic<std::uint32_t> period_ = 0;
};

}  // namespace tensorpool::pages
