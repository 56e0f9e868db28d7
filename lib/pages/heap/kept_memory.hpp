#pragma once

#include "limits/commit_budget.hpp"
#include "pages/heap/page_request.hpp"
#include "statistics/metrics/pool_metrics.hpp"

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

/// The free memory that one pool keeps committed, in bytes: free extents of its page heap, the
/// cache of large blocks, and what depots and threads' caches keep. Says how much of it is more
/// than the pool's retention allows. Thread-safe.
class KeptMemory {
public:
    KeptMemory(limits::CommitBudget& process, const HeapOptions& options,
               statistics::PoolTotals& totals) noexcept;

    /// The free bytes of the page heap.
    std::size_t free_bytes() const noexcept {
        return totals_.free_bytes.load(std::memory_order_relaxed);
    }
    /// Returns whether the amount is unlimited, so that what is kept elsewhere is not counted.
    bool is_unlimited() const noexcept { return max_bytes_ == SIZE_MAX; }
    /// Returns whether `more` bytes may be kept in depots, threads' caches or the large-block
    /// cache.
    bool may_keep(std::size_t more) const noexcept {
        return is_unlimited() || bytes() + more <= max_bytes_;
    }
    /// The bytes above the limit.
    std::size_t excess() const noexcept {
        const std::size_t now = bytes();
        return now - std::min(now, max_bytes_);
    }
    /// Counts bytes of free blocks that enter (or, if negative, leave) depots or threads' caches.
    void note_elsewhere(std::ptrdiff_t bytes) noexcept {
        if (is_unlimited()) [[likely]]
            return;
        elsewhere_.fetch_add(static_cast<std::size_t>(bytes), std::memory_order_relaxed);
    }

    /// Adds to the free bytes of the page heap, and to those of them that were never touched; a
    /// negative number is added modulo 2^64. The caller holds the lock of a shard.
    void count_free(std::size_t more, std::size_t more_untouched) noexcept;
    /// From now on, several shards may count at once. Called under the lock of the first one.
    void divide() noexcept { is_divided_.store(true, std::memory_order_relaxed); }

    /// Notes that the system may take so many of the free bytes.
    void note_offered(std::size_t bytes) noexcept;
    /// Returns the free bytes that take memory and that the system may not take. What threads keep
    /// does not count.
    std::size_t unoffered_bytes() const noexcept;

    /// The number of the current retention period.
    std::uint32_t period() const noexcept { return retention_.period(); }
    /// The length of a period that begins now.
    std::uint64_t period_ns() const noexcept;
    bool has_period_ended(std::uint64_t now_ns) const noexcept { return retention_.ended(now_ns); }
    /// Begins the next period. Returns the bytes that were free during all of the last one. Called
    /// by one thread at a time.
    std::size_t begin_period(std::uint64_t now_ns) noexcept;

private:
    std::size_t bytes() const noexcept;

    limits::CommitBudget& process_;
    statistics::PoolTotals& totals_;
    const std::size_t max_bytes_;
    const std::uint64_t usual_period_ns_;
    Retention retention_;
    // Relaxed, all three: counts and a hint that order nothing.
    std::atomic<std::size_t> elsewhere_ = 0;
    // At most what is free, so that it falls as free memory is used; what was offered may be used
    // last.
    std::atomic<std::uint64_t> offered_ = 0;
    std::atomic<bool> is_divided_ = false;
};

}  // namespace tensorpool::pages
