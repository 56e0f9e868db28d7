#pragma once

#include "blocks/cache.hpp"

namespace tensorpool::blocks {

/// Freed blocks that wait before they are reused, first in, first out. The queue lies in memory
/// mapped from the system, which only what is used of it takes. Thread-safe.
class Quarantine : public base::Lockable {
public:
    struct Block {
        void* begin;
        std::size_t bytes;
    };

    constexpr Quarantine() noexcept = default;
    ~Quarantine() {
        if (queue_ != nullptr) platform::unmap(queue_, max_blocks * sizeof(Block));
    }

    /// Sets how many bytes of blocks it holds, which is 0 at first, and where it publishes how many
    /// it does. It never holds more than 65,536 blocks. To be called before the first block is
    /// added.
    void limit(std::size_t max_bytes, std::atomic<std::uint64_t>& published) noexcept {
        max_bytes_ = max_bytes;
        published_ = &published;
    }
    /// Adds a block. If the limit is then reached, takes up to `max_count` of the oldest blocks,
    /// until the queue is a sixteenth below its limit. Returns their number. A block that alone
    /// exceeds the limit, or for which the system has no memory, comes back at once. REQUIRES:
    /// `max_count` is not 0. The queue always has room: its limit is reached, and some blocks are
    /// taken, when it is full.
    unsigned exchange(Block added, Block* taken, unsigned max_count) noexcept {
        taken[0] = added;
        if (added.bytes > max_bytes_) return 1;
        const std::lock_guard guard(mutex_);
        if (!make_queue()) return 1;
        queue_[end_++ % max_blocks] = added;
        bytes_ += added.bytes;
        unsigned count = 0;
        if (holds_more_than(max_bytes_, max_blocks - 1)) {
            const std::size_t kept_bytes = max_bytes_ / 16 * 15;
            while (count != max_count && holds_more_than(kept_bytes, max_blocks / 16 * 15)) {
                taken[count++] = pop();
            }
        }
        publish();
        return count;
    }
    /// Takes up to `max_count` of the oldest blocks. Returns their number.
    unsigned take(Block* blocks, unsigned max_count) noexcept {
        const std::lock_guard guard(mutex_);
        unsigned count = 0;
        while (count < max_count && begin_ != end_) blocks[count++] = pop();
        if (count != 0) publish();
        return count;
    }
    /// Returns the bytes of all blocks for which `counts(block)` holds. REQUIRES: no other thread
    /// adds or takes blocks.
    template <class Predicate>
    std::size_t bytes_of_those(Predicate counts) const noexcept {
        std::size_t bytes = 0;
        for (std::uint64_t at = begin_; at != end_; ++at) {
            const Block& block = queue_[at % max_blocks];
            if (counts(block.begin)) bytes += block.bytes;
        }
        return bytes;
    }

private:
    static constexpr std::size_t max_blocks = std::size_t{1} << 16;
    bool make_queue() noexcept {
        if (queue_ != nullptr) [[likely]]
            return true;
        void* const memory = platform::map(max_blocks * sizeof(Block), platform::page_bytes());
        queue_ = static_cast<Block*>(memory);
        return queue_ != nullptr;
    }
    bool holds_more_than(std::size_t bytes, std::uint64_t blocks) const noexcept {
        return bytes_ > bytes || end_ - begin_ > blocks;
    }
    Block pop() noexcept {
        const Block block = queue_[begin_++ % max_blocks];
        bytes_ -= block.bytes;
        return block;
    }
    // Relaxed: a metric that orders nothing. Only a thread with the lock writes it.
    void publish() noexcept { published_->store(bytes_, std::memory_order_relaxed); }

    std::size_t max_bytes_ = 0;
    std::atomic<std::uint64_t>* published_ = nullptr;
    // Guarded by mutex_. Positions count up; their remainder by `max_blocks` is the index.
    Block* queue_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
    std::size_t bytes_ = 0;
};

/// Returns the number of processors. Reads it from a file of the system once. Threads that do so at
/// the same time find the same number, so relaxed accesses are enough.
inline unsigned processor_count() noexcept {
    static constinit std::atomic<unsigned> known = 0;
    unsigned count = known.load(std::memory_order_relaxed);
    if (count == 0) {
        count = std::max(1U, std::thread::hardware_concurrency());
        known.store(count, std::memory_order_relaxed);
    }
    return count;
}

/// The limit of the bytes that the magazines of all threads of one pool may hold: a number for each
/// processor plus a number for each thread. A thread takes room before it keeps a block, so the
/// free blocks that threads keep never exceed the limit. Thread-safe. All accesses are relaxed,
/// because the limit orders nothing.
class ParkingLimit {
public:
    ParkingLimit(std::size_t bytes_per_processor, std::size_t bytes_per_thread) noexcept
        : for_processors_(bytes_per_processor * processor_count()),
          for_each_thread_(bytes_per_thread) {}

    /// Takes room for `bytes` bytes. Returns false, and takes nothing, if less is left.
    bool take(std::size_t bytes) noexcept {
        if (taken() + bytes > max_bytes()) return false;
        const std::size_t before = taken_.fetch_add(bytes, std::memory_order_relaxed);
        if (before + bytes <= max_bytes()) return true;
        give_back(bytes);
        return false;
    }
    void give_back(std::size_t bytes) noexcept {
        taken_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    /// Sets the bytes that are taken. For the child of a fork, where the share of threads that do
    /// not exist is not known exactly.
    void begin_again(std::size_t taken) noexcept { taken_.store(taken, std::memory_order_relaxed); }

    void add_thread() noexcept { threads_.fetch_add(1, std::memory_order_relaxed); }
    void remove_thread() noexcept { threads_.fetch_sub(1, std::memory_order_relaxed); }

    std::size_t taken() const noexcept { return taken_.load(std::memory_order_relaxed); }
    std::size_t max_bytes() const noexcept {
        return for_processors_ + threads_.load(std::memory_order_relaxed) * for_each_thread_;
    }

private:
    const std::size_t for_processors_;
    const std::size_t for_each_thread_;
    std::atomic<std::size_t> threads_ = 0;
    std::atomic<std::size_t> taken_ = 0;
};

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
              statistics::PoolTotals& totals) noexcept
        : first_(*this),
          number_(heap.pool_number()),
          // A pool whose number exceeds the tables works without caches.
          may_cache_(heap.pool_number() < detail::cached_pool_count),
          counters_(counters),
          large_blocks_(large),
          sources_{name, heap, records, magazines_, totals, states} {
        make_buckets();
    }
    /// Makes another series of the pool of `first`, which must outlive it. With `HasMarks::yes`,
    /// its blocks in use have marks (base/block_mark.hpp). REQUIRES: the pool's counters have the
    /// shared counters of this series.
    enum class HasMarks : bool { no, yes };
    BucketSet(BucketSet& first, unsigned series, HasMarks has_marks) noexcept
        : first_(first),
          number_(first.number_ + series),
          may_cache_(first.may_cache_),
          counters_(first.counters_),
          large_blocks_(first.large_blocks_),
          sources_{
              first.name(),   first.heap(),          first.records(), magazines_,
              first.totals(), first.sources_.states, series,          has_marks == HasMarks::yes} {
        make_buckets();
        coarser_ = shared().finest.load(std::memory_order_relaxed);
        while (!shared().finest.compare_exchange_weak(coarser_, this, std::memory_order_release,
                                                      std::memory_order_relaxed)) {
        }
    }
    ~BucketSet() {
        shared().finest.store(coarser_, std::memory_order_relaxed);
        std::destroy_n(buckets_, detail::bucket_count);
    }

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
    void drain(BucketDepot::Magazines magazines, pages::Changes& changes) noexcept {
        for_each_series([&](BucketSet& set) {
            for (Bucket& bucket : set.buckets_) bucket.depot.drain(magazines, changes);
        });
    }
    /// Returns the blocks that stayed in depots for the whole last period to their spans. Returns
    /// the bytes of spans that went back to the page heap.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept {
        std::size_t bytes = 0;
        for_each_series([&](BucketSet& set) {
            for (Bucket& bucket : set.buckets_) bytes += bucket.depot.drain_unneeded(changes);
        });
        return bytes;
    }

    /// Releases the memory of whole free pages between blocks in use. The capacity does not change.
    void drop_free_pages() noexcept {
        for_each_series([](BucketSet& set) {
            for (Bucket& bucket : set.buckets_) bucket.spans.drop_free_pages();
        });
    }
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
    void lock() noexcept {
        for (Bucket& bucket : buckets_) bucket.spans.lock();
        magazines_.lock();
        if (!is_first()) return;
        shared_.quarantine.lock();
        sources_.heap.lock();
        sources_.records.lock();
        counters_.lock();
    }
    void unlock() noexcept {
        if (is_first()) {
            counters_.unlock();
            sources_.records.unlock();
            sources_.heap.unlock();
            shared_.quarantine.unlock();
        }
        magazines_.unlock();
        for (Bucket& bucket : buckets_) bucket.spans.unlock();
    }

private:
    void make_buckets() noexcept {
        magazines_.count_in(totals().record_bytes);
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            new (&buckets_[bucket]) Bucket(bucket, sources_);
        }
    }

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

// Calls without a thread's cache. They count with the counters that all threads share.

/// Takes one block from the spans, for threads without a cache and for samples. Returns nullptr if
/// memory is refused. A sample counts as a hit: its thread's cache was not asked.
enum class CountAs : std::uint8_t { miss, hit };
inline detail::BucketCounters& counted(BucketSet& set, unsigned bucket) noexcept {
    return set.counters().shared(set.series()).buckets[bucket];
}

inline void* allocate_direct(BucketSet& set, unsigned bucket, std::size_t requested_bytes,
                             pages::SlowPath& path, CountAs count_as = CountAs::miss) noexcept {
    void* block = nullptr;
    const std::size_t grown_before = path.grown;
    if (set[bucket].spans.take(&block, 1, path) == 0) return nullptr;
    const BucketTraits& traits = set[bucket].traits;
    const std::lock_guard guard(set.counters().shared_mutex());
    detail::BucketCounters& counters = counted(set, bucket);
    detail::add(counters.taken, 1);
    if (count_as == CountAs::miss) {
        detail::add(counters.misses, 1);
        detail::add(counters.system_misses, path.grown == grown_before ? 0 : 1);
    }
    detail::add(counters.requested_bytes, requested_bytes);
    detail::add(counters.allocations, 1);
    statistics::count_shared_allocation(traits.row(), traits.block_bytes, requested_bytes);
    return block;
}
/// Returns one block to its span, for threads without a cache.
inline void deallocate_direct(BucketSet& set, unsigned bucket, void* block,
                              pages::Changes& changes) noexcept {
    const BucketTraits& traits = set[bucket].traits;
    {
        const std::lock_guard guard(set.counters().shared_mutex());
        detail::BucketCounters& counters = counted(set, bucket);
        detail::add_release(counters.deallocations, 1);
        detail::add_release(counters.returned, 1);
        statistics::count_shared_deallocation(traits.row(), traits.block_bytes);
    }
    set[bucket].spans.bring_home(&block, 1, changes);
}

}  // namespace tensorpool::blocks
