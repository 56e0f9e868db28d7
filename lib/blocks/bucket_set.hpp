#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>

#include "blocks/bucket.hpp"
#include "blocks/cache.hpp"
#include "blocks/parking_limit.hpp"
#include "pages/large_blocks.hpp"
#include "statistics/segment/pool_counters.hpp"

namespace tensorpool::blocks {

using CacheList = boost::intrusive::list<Cache, boost::intrusive::constant_time_size<false>>;

/// One pool's blocks up to 64 KiB, of one series of sizes (base/block_sizes.hpp): eleven buckets,
/// and the caches of all threads that use them, in which large blocks wait too. The series that a
/// pool has share all else; its first is that of the powers of two. Thread-safe.
class BucketSet {
public:
    /// `name` is for messages and lives as long as the set.
    BucketSet(const char* name, States states, pages::PageHeap& heap, pages::LargeBlocks& large,
              pages::RecordArena& records, statistics::PoolCounters& slots,
              statistics::PoolTotals& totals) noexcept;
    /// A finer series beside the first, for as long as that lives. There are shared counters for it
    /// already.
    BucketSet(BucketSet& first, unsigned series) noexcept;
    BucketSet(const BucketSet&) = delete;
    BucketSet& operator=(const BucketSet&) = delete;
    ~BucketSet();

    Bucket& operator[](unsigned bucket) noexcept { return buckets_[bucket]; }

    std::size_t block_bytes(unsigned bucket) const noexcept {
        return base::block_bytes(series(), bucket);
    }
    unsigned series() const noexcept { return sources_.series; }
    bool is_first() const noexcept { return series() == 0; }
    /// Calls `function`, which may end it, with each series of the pool, from any of them; with the
    /// first at last.
    template <class Function>
    void for_each_series(Function function) noexcept {
        for (BucketSet* set = first_.finest_.load(std::memory_order_acquire); set != nullptr;) {
            BucketSet* const coarser = set->coarser_;
            function(*set);
            set = coarser;
        }
    }

    /// One block without a cache: straight from the spans. nullptr when refused.
    void* allocate_direct(unsigned bucket, std::size_t requested_bytes,
                          pages::SlowPath& path) noexcept;
    void deallocate_direct(unsigned bucket, void* block, pages::Changes& changes) noexcept;

    // Of all series of the pool:
    /// Brings home what lies in all depots.
    void drain(Bucket::Magazines magazines, pages::Changes& changes) noexcept;
    /// Brings home what depots held all through the last period; the bytes of whole spans that the
    /// page heap got.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept;

    /// What the threads' caches may hold, of all series.
    ParkingLimit& parking_limit() noexcept { return first_.parking_limit_; }
    static constexpr std::size_t parked_per_processor = std::size_t{4} << 20;
    static constexpr std::size_t parked_per_thread = std::size_t{64} << 10;
    /// What they may hold of large blocks.
    ParkingLimit& large_parking_limit() noexcept { return first_.large_parking_limit_; }
    const ParkingLimit& large_parking_limit() const noexcept { return large_parking_limit_; }
    pages::LargeBlocks& large_blocks() const noexcept { return large_blocks_; }

    /// Drops whole free pages between blocks in use; capacity stays as it is.
    void drop_free_pages() noexcept;

    /// The entry of each thread's table where there may be caches: the pool's number, and from
    /// there on one for each series.
    unsigned number() const noexcept { return sources_.heap.pool_number() + series(); }
    bool may_cache() const noexcept { return may_cache_; }
    /// Whether inline paths may see the caches. Otherwise they serve on slow paths only.
    bool serves_inline() const noexcept { return sources_.states == States::none; }
    const char* name() const noexcept { return sources_.pool_name; }
    statistics::PoolTotals& totals() const noexcept { return sources_.totals; }
    statistics::PoolCounters& slots() const noexcept { return slots_; }
    std::size_t magazine_bytes() const noexcept { return magazines_.bytes_in_use(); }
    pages::PageHeap& heap() const noexcept { return sources_.heap; }
    pages::RecordArena& records() const noexcept { return sources_.records; }

    /// The registry's, and under its lock: caches in use, those that threads left, the next pool.
    CacheList caches;
    CacheList free_caches;
    BucketSet* next = nullptr;

    /// All locks of the pool, for a fork: those of finer series before those of the first.
    void lock() noexcept;
    void unlock() noexcept;

private:
    void make_buckets() noexcept;

    BucketSet& first_;
    // Of the first: where the list of series begins. Released when the series is whole.
    std::atomic<BucketSet*> finest_ = this;
    BucketSet* coarser_ = nullptr;
    const bool may_cache_;
    statistics::PoolCounters& slots_;
    pages::LargeBlocks& large_blocks_;
    MagazineStore magazines_;
    ParkingLimit parking_limit_{parked_per_processor, parked_per_thread};
    ParkingLimit large_parking_limit_{LargeMagazine::bytes_per_processor, 0};
    BucketSources sources_;
    // An array of objects that can be neither copied nor moved, each with its number.
    union {
        Bucket buckets_[detail::bucket_count];
    };
};

}  // namespace tensorpool::blocks
