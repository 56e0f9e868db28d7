#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>

#include <tensorpool/statistics.hpp>

#include "base/block_sizes.hpp"
#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/owned_record.hpp"

namespace tensorpool::statistics {

/// Who counts in a slot of counters. The counters lie in the segment, or where that has no place
/// left in memory of their own.
struct OwnedCounters {
    detail::ThreadCounters* counters = nullptr;
    CountersRecord* record = nullptr;  // nullptr: there was no place
    OwnedCounters* next = nullptr;     // of the pool's; set once
    unsigned series = 0;               // of the sizes of its blocks; set once
    bool taken = false;
    CountersLink of_thread;
};

/// One pool's slots. Slots are added, never removed before the pool goes. Thread-safe.
class PoolCounters {
public:
    explicit PoolCounters(OwnedRecord<PoolRecord>& pool) noexcept : pool_(pool) {}
    PoolCounters(const PoolCounters&) = delete;
    PoolCounters& operator=(const PoolCounters&) = delete;
    ~PoolCounters();

    /// A slot for the calling thread that no other counts in, for blocks of a series of sizes
    /// (base/block_sizes.hpp). nullptr when the system has no memory.
    OwnedCounters* take(unsigned series = 0) noexcept;
    void give_back(OwnedCounters& slot) noexcept;
    /// Its thread's, now and then: adds a slot without a place up for readers from outside.
    void fold(const OwnedCounters& slot) noexcept {
        if (slot.record == nullptr) [[unlikely]]
            fold_slow(slot);
    }
    /// Any thread's: sums a pool without a record in the segment into `other`. Cheap for any other.
    void fold() noexcept {
        pool_.fold([this] { sum_counters(); });
        for (const OwnedCounters* finer : shared_finer_) {
            if (finer != nullptr && finer->record == nullptr) [[unlikely]]
                fold_shared(*finer);
        }
    }

    /// From now on there are shared counters for blocks of these sizes. False, and none, when the
    /// system has no memory. Before the first call on the pool for such sizes.
    bool add_shared(unsigned series) noexcept;
    /// The counters of threads without a slot. Their writer holds `shared_mutex`.
    detail::ThreadCounters& shared(unsigned series = 0) noexcept {
        return series == 0 ? pool_->shared : *shared_finer_[series - 1]->counters;
    }
    std::mutex& shared_mutex() noexcept { return shared_mutex_; }

    /// Calls `function` with the counters of each slot, and with those that are shared, and with
    /// their series.
    template <class Function>
    void for_each(Function function) const noexcept {
        function(pool_->shared, 0U);
        for (const OwnedCounters* slot = first_.load(std::memory_order_acquire); slot != nullptr;
             slot = slot->next) {
            function(*slot->counters, slot->series);
        }
    }

    /// The pool's figures.
    PoolStatistics statistics() const noexcept;
    /// Bytes in use, and nothing else.
    std::uint64_t in_use_bytes() const noexcept;
    std::uint64_t allocations() const noexcept;
    std::uint64_t deallocations() const noexcept;
    /// Threads that have a slot now.
    std::uint64_t taken_count() const noexcept {
        return pool_->threads.load(std::memory_order_relaxed);
    }

    void lock() noexcept;
    void unlock() noexcept;

private:
    struct Chunk;
    struct Alone;
    OwnedCounters* first_free(unsigned series) const noexcept;
    OwnedCounters* add(unsigned series) noexcept;
    bool add_chunk() noexcept;
    void give_place(OwnedCounters& slot) noexcept;
    void fold_slow(const OwnedCounters& slot) noexcept;
    void fold_shared(const OwnedCounters& slot) noexcept;
    void sum_counters() noexcept;

    OwnedRecord<PoolRecord>& pool_;
    std::mutex mutex_;
    std::mutex shared_mutex_;
    // Slots are pushed with release and walked with acquire: who finds one finds it zeroed.
    std::atomic<OwnedCounters*> first_ = nullptr;
    Chunk* chunks_ = nullptr;
    std::array<OwnedCounters*, base::series_count - 1> shared_finer_ = {};
};

}  // namespace tensorpool::statistics
