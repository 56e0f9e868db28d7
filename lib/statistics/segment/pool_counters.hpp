#pragma once

#include <tensorpool/statistics.hpp>

#include "base/block_sizes.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::statistics {

/// Counters of one pool that one thread at a time uses. The counters lie in the segment, or in
/// private memory if the segment has no free record.
struct OwnedCounters {
    detail::ThreadCounters* counters = nullptr;
    CountersRecord* record = nullptr;  // nullptr if the segment had no free record
    OwnedCounters* next = nullptr;     // in the list of the pool; set once
    OwnedCounters* next_free = nullptr;
    unsigned series = 0;  // of the block sizes; set once
    CountersLink of_thread;
};

/// The counters of one pool. They are added, and never removed before the pool is destroyed.
/// Thread-safe.
class PoolCounters {
public:
    explicit PoolCounters(OwnedRecord<PoolRecord>& pool) noexcept : pool_(pool) {}
    PoolCounters(const PoolCounters&) = delete;
    PoolCounters& operator=(const PoolCounters&) = delete;
    ~PoolCounters();

    /// Returns counters that only the calling thread uses, for blocks of a series of sizes
    /// (base/block_sizes.hpp). Returns nullptr if the system has no memory.
    OwnedCounters* take(unsigned series = 0) noexcept;
    void give_back(OwnedCounters& owned) noexcept;
    /// Adds counters without a record in the segment to those that other processes read. Called
    /// from time to time by the thread that uses them.
    void fold(const OwnedCounters& owned) noexcept {
        if (owned.record == nullptr) [[unlikely]]
            fold_slow(owned);
    }
    /// Sums a pool without a record in the segment into `other`. Cheap for any other pool. May be
    /// called on any thread.
    void fold() noexcept {
        pool_.fold([this] { sum_counters(); });
        for (const OwnedCounters* finer : shared_finer_) {
            if (finer != nullptr && finer->record == nullptr) [[unlikely]]
                fold_shared(*finer);
        }
    }

    /// Adds shared counters for blocks of this series. Must be called before the first call on the
    /// pool for such sizes. Returns false, and adds nothing, if the system has no memory.
    bool add_shared(unsigned series) noexcept;
    /// Returns the counters for threads that have none of their own. The writer must hold
    /// `shared_mutex`.
    detail::ThreadCounters& shared(unsigned series = 0) noexcept {
        return series == 0 ? pool_->shared : *shared_finer_[series - 1]->counters;
    }
    std::mutex& shared_mutex() noexcept { return shared_mutex_; }

    /// Calls `function` with all counters, including the shared ones, and with their series.
    template <class Function>
    void for_each(Function function) const noexcept {
        function(pool_->shared, 0U);
        for (const OwnedCounters* owned = first_.load(std::memory_order_acquire); owned != nullptr;
             owned = owned->next) {
            function(*owned->counters, owned->series);
        }
    }

    /// Returns the statistics of the pool.
    PoolStatistics statistics() const noexcept;
    /// Returns the bytes in use. Cheaper than `statistics`.
    std::uint64_t in_use_bytes() const noexcept;
    std::uint64_t allocations() const noexcept;
    std::uint64_t deallocations() const noexcept;
    /// Returns the number of threads that have counters now.
    std::uint64_t taken_count() const noexcept {
        return pool_->totals.threads.load(std::memory_order_relaxed);
    }

    void lock() noexcept;
    void unlock() noexcept;

private:
    struct Chunk;
    struct Alone;
    OwnedCounters* add(unsigned series) noexcept;
    bool add_chunk() noexcept;
    void give_memory(OwnedCounters& owned) noexcept;
    void fold_slow(const OwnedCounters& owned) noexcept;
    void fold_shared(const OwnedCounters& owned) noexcept;
    void sum_counters() noexcept;
    std::uint64_t sum_of(detail::Counter detail::BucketCounters::*of_buckets,
                         detail::Counter detail::LargeCounters::*of_large) const noexcept;

    OwnedRecord<PoolRecord>& pool_;
    std::mutex mutex_;
    std::mutex shared_mutex_;
    // Elements are pushed with release and walked with acquire: a thread that finds one sees it
    // initialized.
    std::atomic<OwnedCounters*> first_ = nullptr;
    Chunk* chunks_ = nullptr;
    std::array<OwnedCounters*, base::series_count> free_ = {};  // of ended threads, by series
    std::array<OwnedCounters*, base::series_count - 1> shared_finer_ = {};
};

}  // namespace tensorpool::statistics
