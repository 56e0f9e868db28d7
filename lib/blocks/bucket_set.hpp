#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstddef>

#include "blocks/bucket.hpp"
#include "blocks/cache.hpp"
#include "blocks/parking_limit.hpp"
#include "blocks/quarantine.hpp"
#include "pages/large_blocks.hpp"
#include "statistics/segment/pool_counters.hpp"

namespace tensorpool::blocks {

using CacheList = boost::intrusive::list<Cache, boost::intrusive::constant_time_size<false>>;

class BucketSet;

/// What all series of a pool share. Each member is thread-safe or fixed.
struct SharedBySeries {
    static constexpr std::size_t parked_per_processor = std::size_t{4} << 20;
    static constexpr std::size_t parked_per_thread = std::size_t{64} << 10;

    explicit SharedBySeries(BucketSet& first) noexcept : finest(&first) {}

    /// The limit of the bytes that magazines of all threads and all series may hold.
    ParkingLimit parking_limit{parked_per_processor, parked_per_thread};
    /// The limit of the bytes of large blocks that all threads may keep.
    ParkingLimit large_parking_limit{LargeMagazine::bytes_per_processor, 0};
    /// The freed blocks of a pool with `States::hardened` that wait before they are reused.
    Quarantine quarantine;
    /// Whether the first request through a new cache asks the pool whether to sample it. Set before
    /// there are caches.
    bool samples_requests = false;
    /// The head of the list of all series. Stored with release when the new series is constructed.
    std::atomic<BucketSet*> finest;
    /// The marked set, or nullptr. Stored with release when it is constructed.
    std::atomic<BucketSet*> marked = nullptr;
    /// Whether blocks of the marked set lie among others, so that inline frees do not recognize
    /// them (`note_addresses`). Written under the registry's lock. Relaxed, also read without it.
    std::atomic<bool> hides_frees = false;
};

/// One pool's blocks up to 64 KiB of one series of sizes (base/block_sizes.hpp): eleven buckets,
/// and the caches of all threads that use them. The caches of the first series, the powers of two,
/// also hold free large blocks. All series of a pool share everything else. Thread-safe.
class BucketSet {
public:
    /// Makes the first series of a pool. `name` is for messages and must outlive the set.
    BucketSet(const char* name, States states, pages::PageHeap& heap, pages::LargeBlocks& large,
              pages::RecordArena& records, statistics::PoolCounters& counters,
              statistics::PoolTotals& totals) noexcept;
    /// Makes another series of the pool of `first`, which must outlive it. With `HasMarks::yes`,
    /// its blocks in use have marks (base/block_mark.hpp). REQUIRES: the pool's counters have the
    /// shared counters of this series.
    enum class HasMarks : bool { no, yes };
    BucketSet(BucketSet& first, unsigned series, HasMarks has_marks) noexcept;
    BucketSet(const BucketSet&) = delete;
    BucketSet& operator=(const BucketSet&) = delete;
    ~BucketSet();

    Bucket& operator[](unsigned bucket) noexcept { return buckets_[bucket]; }

    std::size_t block_bytes(unsigned bucket) const noexcept {
        return base::block_bytes(series(), bucket);
    }
    unsigned series() const noexcept { return sources_.series; }
    bool is_first() const noexcept { return &first_ == this; }
    bool is_marked() const noexcept { return sources_.is_marked; }
    /// Whether inline frees recognize a block of the marked set by its address.
    bool lies_low(const void* block) const noexcept {
        const pages::AddressSpace& space = heap().space();
        return space.shard_of(space.map().page_of(block)) == pages::AddressSpace::marked_shard;
    }
    /// Whether scopes of budgets charge blocks of the pool: it has no budget of its own.
    bool may_charge() const noexcept { return heap().options().budget == nullptr; }
    BucketSet& first() const noexcept { return first_; }
    /// Calls `function` with each series of the pool, with the first series last. May be called on
    /// any of them. `function` may destroy its argument.
    template <class Function>
    void for_each_series(Function function) noexcept {
        for (BucketSet* set = shared().finest.load(std::memory_order_acquire); set != nullptr;) {
            BucketSet* const coarser = set->coarser_;
            function(*set);
            set = coarser;
        }
    }

    SharedBySeries& shared() const noexcept { return first_.shared_; }
    // The following apply to all series of the pool.
    /// Returns all blocks in depots to their spans.
    void drain(BucketDepot::Magazines magazines, pages::Changes& changes) noexcept;
    /// Returns the blocks that stayed in depots for the whole last period to their spans. Returns
    /// the bytes of spans that went back to the page heap.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept;

    /// Releases the memory of whole free pages between blocks in use. The capacity does not change.
    void drop_free_pages() noexcept;
    pages::LargeBlocks& large_blocks() const noexcept { return large_blocks_; }

    /// The index of this set's cache in each thread's table: the pool's number plus the series. The
    /// marked set has that of the first series (thread_caches.hpp).
    unsigned number() const noexcept { return number_; }
    bool may_cache() const noexcept { return may_cache_; }
    /// Whether inline paths may see the caches. If not, the caches serve on slow paths only.
    bool serves_inline() const noexcept { return sources_.states == States::none; }
    const char* name() const noexcept { return sources_.pool_name; }
    statistics::PoolTotals& totals() const noexcept { return sources_.totals; }
    statistics::PoolCounters& counters() const noexcept { return counters_; }
    std::size_t magazine_bytes() const noexcept { return magazines_.bytes_in_use(); }
    pages::PageHeap& heap() const noexcept { return sources_.heap; }
    pages::RecordArena& records() const noexcept { return sources_.records; }

    // Used by the registry, under its lock: caches in use, caches for reuse after their threads
    // ended, its neighbors in the list.
    CacheList caches;
    CacheList free_caches;
    BucketSet* next = nullptr;
    BucketSet* previous = nullptr;

    /// Takes all locks of this series and, with the first series, those that the series share. For
    /// fork handlers, which lock finer series before the first.
    void lock() noexcept;
    void unlock() noexcept;

private:
    void make_buckets() noexcept;

    BucketSet& first_;
    const unsigned number_;
    BucketSet* coarser_ = nullptr;
    const bool may_cache_;
    statistics::PoolCounters& counters_;
    pages::LargeBlocks& large_blocks_;
    MagazineStore magazines_;
    SharedBySeries shared_{*this};  // used in the first series
    BucketSources sources_;
    // A union, because buckets can be neither copied nor moved and each is constructed with its
    // number.
    union {
        Bucket buckets_[detail::bucket_count];
    };
};

}  // namespace tensorpool::blocks
