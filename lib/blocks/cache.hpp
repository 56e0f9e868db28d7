#pragma once

#include "blocks/kept_large_blocks.hpp"
#include "blocks/magazine_pair.hpp"
#include "blocks/take_back.hpp"
#include "statistics/segment/pool_counters.hpp"
#include "watch/pace.hpp"

namespace tensorpool::blocks {

class BucketSet;

/// How many blocks the magazines of one cache may hold, and the room for them that it took from its
/// pool's ParkingLimit.
///
/// A capacity begins at 16 KiB of blocks, doubles when a bucket goes to its depot again, and falls
/// back when the bucket has been idle. Both magazines of all buckets together hold at most 4 MiB,
/// and those of all threads at most what the limit allows. If no room is left, a bucket keeps no
/// blocks.
class ParkedRoom {
public:
    /// Begins without room, for buckets that begin too.
    void begin(BucketSet& set) noexcept;

    /// Takes room for both magazines of a bucket. Returns false if the limit allows no more.
    bool take(MagazinePair& pair) noexcept;
    /// Gives a bucket's room back. REQUIRES: the bucket parks nothing.
    void give_back(MagazinePair& pair) noexcept;
    /// Doubles a bucket's capacity if this is its second trip to the depot since the last change,
    /// which shows that it is busy. Returns true if the capacity grew. REQUIRES: it has room.
    bool grow(MagazinePair& pair, pages::Changes& changes) noexcept {
        if (!std::exchange(pair.went_to_depot, true)) return false;
        const unsigned max_capacity = pair.loaded.bucket().traits.layout.max_in_magazine;
        return pair.capacity != max_capacity && grow_again(pair, changes);
    }
    /// Takes a magazine with blocks from the bucket's depot. Returns nullptr if there is none. If
    /// there is no room for all its blocks, the others go home. REQUIRES: the bucket has room.
    Magazine* take_full(MagazinePair& pair, pages::Changes& changes) noexcept;
    /// Sets a bucket's capacity to the first one. REQUIRES: the bucket parks nothing.
    void forget_growth(MagazinePair& pair) noexcept {
        const unsigned first = pair.loaded.bucket().traits.layout.first_refill;
        capacity_bytes_ -= 2 * (pair.capacity - first) * pair.loaded.bucket().traits.block_bytes;
        pair.capacity = pair.largest = static_cast<std::uint8_t>(first);
        pair.went_to_depot = false;
    }

    /// The bytes that the magazines may hold. Relaxed: other threads read an estimate.
    std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// The number of trips of the cache to depots and to spans.
    unsigned trips = 0;
    /// True on every 16th trip. The pool then checks whether a retention period has ended, which
    /// reads the clock.
    bool is_time_to_look() const noexcept { return trips % 16 == 0; }

private:
    bool grow_again(MagazinePair& pair, pages::Changes& changes) noexcept;
    bool enlarge(MagazinePair& pair, unsigned capacity, unsigned largest,
                 pages::Changes& changes) noexcept;
    void add(std::size_t bytes) noexcept {
        bytes_.store(this->bytes() + bytes, std::memory_order_relaxed);
    }

    BucketSet* set_ = nullptr;
    std::size_t capacity_bytes_ = 0;  // both magazines of all buckets, whether they park or not
    std::atomic<std::size_t> bytes_ = 0;
};

struct ThreadCaches;

/// The slow half of a thread's cache: two magazines for each bucket. It is used by its thread, and
/// by a thread that holds the registry's lock when the owner has ended, when the pool is destroyed,
/// in the child of a fork, or when other threads need the parked blocks.
class Cache : public detail::ThreadCache,
              public boost::intrusive::list_base_hook<
                  boost::intrusive::link_mode<boost::intrusive::normal_link>> {
public:
    /// Initializes a new or reused cache for this set, with `owned` as its counters. It parks
    /// nothing yet.
    void begin(BucketSet& set, statistics::OwnedCounters& owned) noexcept;

    /// Returns a block from the spare magazine, the depot or spans. Called when `pop` found none.
    /// Returns nullptr if memory is refused.
    void* pop_slow(unsigned bucket, std::size_t requested_bytes, pages::SlowPath& path) noexcept;
    /// Returns a block from the spare magazine or from the depot; nullptr if both are empty.
    void* pop_exchanged(unsigned bucket, std::size_t requested_bytes,
                        pages::Changes& changes) noexcept;
    /// Accepts a freed block. Called when `push` found no room.
    void push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept;

    /// Returns whether `block`, of this bucket, lies in one of the bucket's two magazines.
    bool parks(unsigned bucket, const void* block) noexcept {
        const SlowCall call(*this);
        return pairs_[bucket].parks(block);
    }
    /// Gives all magazines to the depots, with their blocks unless these must go home.
    void give_back_blocks(pages::Changes& changes) noexcept {
        const SlowCall call(*this);
        for (MagazinePair& pair : pairs_) give_back(pair, changes);
    }
    /// Does the same, and gives large blocks to the page heap.
    void give_back_all(pages::Changes& changes) noexcept {
        give_back_blocks(changes);
        large.give_back(changes);
    }

    /// The large blocks that the thread keeps; none in the caches of other sets than the first.
    KeptLargeBlocks large;

    // Taking back of all parked blocks by another thread, which holds the registry's lock. The
    // calls come in this order, with a fence of all threads before `close` and before `take_back`.
    void claim() noexcept {
        lock_.claim();
        large.lock.claim();
    }
    /// Makes the inline paths find no block and no room. Returns false, and does nothing, if the
    /// owner is inside a slow path.
    bool close() noexcept;
    /// Returns all blocks to their spans.
    void take_back(pages::Changes& changes) noexcept;
    void end_claim() noexcept {
        lock_.end_claim();
        large.lock.end_claim();
    }

    const ParkedRoom& room() const noexcept { return room_; }
    // Used by the pool on slow paths of the thread.
    /// What `bytes_to_sample` counts down to.
    watch::Countdown countdown;

    // Of a marked set (marked_set.hpp), whose blocks LoadedBlocks exposes.
    /// Accepts a freed block with this mark, which keeps it. Returns false, and does nothing,
    /// unless the cache exposes blocks with the same mark and the magazine has room.
    bool push_exposed(unsigned bucket, void* block, const base::BlockMark* mark) noexcept;
    /// Ends the marks of all exposed blocks and refunds them. Returns false, and does nothing, if
    /// another thread takes back blocks.
    bool try_conceal() noexcept;
    /// The budget that exposed blocks are charged to; nullptr if none is exposed. Relaxed: the
    /// thread itself writes it, others read an estimate.
    detail::BudgetNode* exposed_to() const noexcept {
        return exposed_to_.load(std::memory_order_relaxed);
    }
    /// In the thread's list of caches that expose blocks (thread_caches.hpp).
    Cache* next_exposing = nullptr;
    bool is_listed = false;

    // Under the registry's lock.
    /// The table of the thread that uses the cache.
    ThreadCaches* table = nullptr;
    /// The thread's cache of the marked set, if this is one of the first set of a pool; nullptr if
    /// there is none.
    Cache* marked = nullptr;
    /// The calls that the thread had made at the last check for idle threads (take_back.cpp).
    std::uint64_t seen_calls = 0;
    std::uint64_t seen_large_calls = 0;

    BucketSet& set() const noexcept { return *set_; }
    statistics::OwnedCounters& owned_counters() const noexcept { return *owned_counters_; }

private:
    /// A slow path of the owner. While this object exists, no other thread takes back blocks.
    class SlowCall {
    public:
        explicit SlowCall(Cache& cache) noexcept : cache_(cache) { enter(cache); }
        ~SlowCall() { cache_.lock_.unlock(); }
        SlowCall(const SlowCall&) = delete;
        SlowCall& operator=(const SlowCall&) = delete;

        static void enter(Cache& cache) noexcept {
            cache.lock_.lock(wait_for_take_back);
            if (cache.was_closed_) [[unlikely]]
                cache.open();
        }

    private:
        Cache& cache_;
    };

    /// Ends what another thread did in `close`.
    void open() noexcept;
    bool exchange_for_full(MagazinePair& pair, pages::Changes& changes) noexcept;
    bool load_from_spans(MagazinePair& pair, pages::SlowPath& path) noexcept;
    unsigned take_from_spans(MagazinePair& pair, void** blocks, pages::SlowPath& path) noexcept;
    bool make_room(MagazinePair& pair, pages::Changes& changes) noexcept;
    bool may_park(MagazinePair& pair, pages::Changes& changes) noexcept;
    void give_back(MagazinePair& pair, pages::Changes& changes) noexcept;
    void count_trip(pages::Changes& changes) noexcept;
    bool expose(unsigned bucket, pages::SlowPath& path) noexcept;
    void conceal(MagazinePair& pair) noexcept {
        if (exposed_to() != nullptr) exposed_to()->refund(pair.loaded.conceal());
    }

    MagazinePair pairs_[detail::bucket_count];
    ParkedRoom room_;
    BucketSet* set_ = nullptr;
    statistics::OwnedCounters* owned_counters_ = nullptr;
    BiasedLock lock_;  // guards all but the fast path's part and `large`
    bool was_closed_ = false;
    std::atomic<detail::BudgetNode*> exposed_to_ = nullptr;
    std::uint32_t exposing_ = 0;  // a bit for each bucket that may have exposed blocks
};

/// Counts no block as parked by a cache from now on, and its large blocks as lost. For the cache of
/// a thread that does not exist in the child of a fork: it only reads the cache, which must not be
/// used before it begins again.
void abandon(Cache& cache) noexcept;
/// After caches were abandoned, counts the pool's blocks as lost that are neither in use, parked,
/// in a depot nor in the quarantine. What their threads counted does not tell: they went on between
/// the copy of the counters and the fork, and their blocks may have reached a depot in between.
void count_lost(BucketSet& first) noexcept;

}  // namespace tensorpool::blocks
