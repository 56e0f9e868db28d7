#pragma once

#include <iterator>

#include "statistics/scopes/counters_of_thread.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/sums/pool_statistics.hpp"

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

/// Adds the counters of a thread to those of series 0. Blocks of finer sizes count under the bucket
/// that would have served the request. Readers see no more detail for counters without a record in
/// the segment.
inline void add_rows(detail::ThreadCounters& sums, const detail::ThreadCounters& thread,
                     unsigned series) noexcept {
    constexpr std::size_t words_of_bucket = words_of<detail::BucketCounters>;
    for (std::size_t i = 0; i < words_of<detail::ThreadCounters>; ++i) {
        const auto bucket = static_cast<unsigned>(i / words_of_bucket);
        const unsigned row = bucket < detail::bucket_count ? base::row_of(series, bucket) : bucket;
        detail::add(as_words(sums)[row * words_of_bucket + i % words_of_bucket],
                    read(as_words(thread)[i]));
    }
}

/// The counters of one pool. They are added, and never removed before the pool is destroyed.
/// Thread-safe.
class PoolCounters {
public:
    explicit PoolCounters(OwnedRecord<PoolRecord>& pool) noexcept : pool_(pool) {}
    ~PoolCounters() {
        for (OwnedCounters* owned = first_.load(std::memory_order_relaxed); owned != nullptr;
             owned = owned->next) {
            end(owned->of_thread);
            if (owned->record != nullptr) {
                segment().remove(*owned->record);
            } else {
                platform::unmap(owned->counters, platform::whole_pages(sizeof(Alone)));
                segment().count_left_out(CountersRecord::layout, false);
            }
        }
        while (chunks_ != nullptr) {
            platform::unmap(std::exchange(chunks_, chunks_->next),
                            platform::whole_pages(sizeof(Chunk)));
        }
    }

    /// Returns counters that only the calling thread uses, for blocks of a series of sizes
    /// (base/block_sizes.hpp). Returns nullptr if the system has no memory. A thread that has
    /// counters for a finer series also has counters for series 0.
    OwnedCounters* take(unsigned series = 0) noexcept {
        const std::lock_guard guard(mutex_);
        if (free_[series] == nullptr) free_[series] = add(series);
        if (free_[series] == nullptr) return nullptr;
        OwnedCounters* const owned = std::exchange(free_[series], free_[series]->next_free);
        if (owned->record != nullptr) {
            owned->record->thread.store(platform::current_thread_id(), std::memory_order_relaxed);
        }
        if (series == 0) detail::add(pool_->totals.threads, 1);
        begin(owned->of_thread, *owned->counters, series);
        return owned;
    }
    void give_back(OwnedCounters& owned) noexcept {
        const std::lock_guard guard(mutex_);
        end(owned.of_thread);
        owned.next_free = std::exchange(free_[owned.series], &owned);
        if (owned.record != nullptr) owned.record->thread.store(0, std::memory_order_relaxed);
        fold(owned);
        if (owned.series == 0) detail::add(pool_->totals.threads, ~std::uint64_t{0});
    }
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
    bool add_shared(unsigned series) noexcept {
        const std::lock_guard guard(mutex_);
        OwnedCounters* const owned = add(series);
        if (owned == nullptr) return false;
        shared_finer_[series - 1] = owned;
        return true;
    }
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

    PoolStatistics statistics() const noexcept {
        return statistics_of(
            *pool_, [this](auto function) { for_each(function); }, [] {});
    }
    /// Returns the bytes in use. Cheaper than `statistics`.
    std::uint64_t in_use_bytes() const noexcept {
        std::uint64_t freed = 0;
        for_each([&](const detail::ThreadCounters& thread, unsigned series) {
            for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
                freed += read_first(thread.buckets[bucket].deallocations) *
                         base::block_bytes(series, bucket);
            }
            freed += read_first(thread.large.deallocated_bytes);
        });
        std::uint64_t allocated = 0;
        for_each([&](const detail::ThreadCounters& thread, unsigned series) {
            for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
                allocated +=
                    read(thread.buckets[bucket].allocations) * base::block_bytes(series, bucket);
            }
            allocated += read(thread.large.allocated_bytes);
        });
        return above(allocated, freed);
    }
    std::uint64_t allocations() const noexcept {
        return sum_of(&detail::BucketCounters::allocations, &detail::LargeCounters::allocations);
    }
    std::uint64_t deallocations() const noexcept {
        return sum_of(&detail::BucketCounters::deallocations,
                      &detail::LargeCounters::deallocations);
    }
    std::uint64_t taken_count() const noexcept {
        return pool_->totals.threads.load(std::memory_order_relaxed);
    }

    void lock() noexcept {
        mutex_.lock();
        shared_mutex_.lock();
        pool_.lock();
    }
    void unlock() noexcept {
        pool_.unlock();
        shared_mutex_.unlock();
        mutex_.unlock();
    }

private:
    /// Memory for OwnedCounters: one page.
    struct Chunk {
        static constexpr std::size_t bytes = 4096;

        Chunk* next = nullptr;
        unsigned used = 0;
        OwnedCounters elements[(bytes - 2 * sizeof(void*)) / sizeof(OwnedCounters)];
    };

    /// Counters without a record in the segment. The counters come first, so that a pointer to them
    /// also points to this object.
    struct Alone {
        detail::ThreadCounters counters;
        FoldedWords<words_of<detail::ThreadCounters>> folded;
    };

    OwnedCounters* add(unsigned series) noexcept {
        if ((chunks_ == nullptr || chunks_->used == std::size(chunks_->elements)) && !add_chunk()) {
            return nullptr;
        }
        OwnedCounters& owned = chunks_->elements[chunks_->used];
        owned.series = series;
        give_memory(owned);
        if (owned.counters == nullptr) return nullptr;
        ++chunks_->used;
        owned.next = first_.load(std::memory_order_relaxed);
        first_.store(&owned, std::memory_order_release);
        return &owned;
    }
    bool add_chunk() noexcept {
        static_assert(sizeof(Chunk) <= Chunk::bytes);
        void* const memory =
            platform::map(platform::whole_pages(sizeof(Chunk)), platform::page_bytes());
        if (memory == nullptr) return false;
        chunks_ = new (memory) Chunk{.next = chunks_, .used = 0, .elements = {}};
        pool_->totals.record_bytes.fetch_add(platform::whole_pages(sizeof(Chunk)),
                                             std::memory_order_relaxed);
        return true;
    }
    void give_memory(OwnedCounters& owned) noexcept {
        if (pool_.is_in_segment()) {
            owned.record = segment().add<CountersRecord>("", [&](CountersRecord& record) {
                record.pool.store(read(pool_->id), std::memory_order_relaxed);
                record.series.store(owned.series, std::memory_order_relaxed);
            });
        }
        std::size_t bytes = sizeof(CountersRecord);
        if (owned.record != nullptr) {
            owned.counters = &owned.record->counters;
        } else {
            bytes = platform::whole_pages(sizeof(Alone));
            void* const memory = platform::map(bytes, platform::page_bytes());
            if (memory == nullptr) return;
            owned.counters = &(new (memory) Alone{})->counters;
            segment().count_left_out(CountersRecord::layout, true);
        }
        pool_->totals.record_bytes.fetch_add(bytes, std::memory_order_relaxed);
    }
    // If the pool has no record in the segment, its counters are summed together with the pool.
    void fold_slow(const OwnedCounters& owned) noexcept {
        if (!pool_.is_in_segment()) return;
        Alone& alone = reinterpret_cast<Alone&>(*owned.counters);
        detail::ThreadCounters rows{};
        add_rows(rows, alone.counters, owned.series);
        alone.folded.fold(as_words(rows), as_words(pool_->left_out));
    }
    // Skipped while another thread holds the lock: that thread is about to fold the same counters.
    void fold_shared(const OwnedCounters& owned) noexcept {
        const std::unique_lock guard(shared_mutex_, std::try_to_lock);
        if (guard.owns_lock()) fold_slow(owned);
    }
    // Sums into the pool's private record. `shared` is added as it is.
    void sum_counters() noexcept {
        detail::ThreadCounters sums{};
        for_each([&](const detail::ThreadCounters& thread, unsigned series) {
            if (&thread != &pool_->shared) add_rows(sums, thread, series);
        });
        for (std::size_t i = 0; i < words_of<detail::ThreadCounters>; ++i) {
            as_words(pool_->left_out)[i].store(read(as_words(sums)[i]), std::memory_order_relaxed);
        }
    }
    std::uint64_t sum_of(detail::Counter detail::BucketCounters::*of_buckets,
                         detail::Counter detail::LargeCounters::*of_large) const noexcept {
        std::uint64_t sum = 0;
        for_each([&](const detail::ThreadCounters& thread, unsigned) {
            for (const detail::BucketCounters& bucket : thread.buckets)
                sum += read(bucket.*of_buckets);
            sum += read(thread.large.*of_large);
        });
        return sum;
    }

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
