#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>

#include <tensorpool/detail/thread_cache.hpp>

#include "blocks/biased_lock.hpp"
#include "blocks/bucket.hpp"
#include "blocks/large_magazine.hpp"
#include "limits/budget_node.hpp"
#include "statistics/segment/pool_counters.hpp"
#include "watch/countdown.hpp"

namespace tensorpool::blocks {

class BucketSet;
struct ThreadCaches;

}  // namespace tensorpool::blocks

namespace tensorpool::pages {
class LargeBlocks;
}  // namespace tensorpool::pages

namespace tensorpool::blocks {

/// The threads from which `ThreadRegistry::take_back` takes free blocks: idle ones; as many as
/// needed to get below half of the limit; or all.
enum class TakeFrom : std::uint8_t { idle, enough, everyone };

/// The slow half of a thread's cache: two magazines for each bucket, loaded and spare, and their
/// capacities. It is used by its thread, and by a thread that holds the registry's lock when the
/// owner has ended, when the pool is destroyed, in the child of a fork, or when other threads need
/// the parked blocks.
///
/// A capacity begins at 16 KiB of blocks, doubles when a bucket goes to its depot again, and falls
/// back when the bucket has been idle. Both magazines of all buckets together hold at most 4 MiB,
/// and those of all threads at most what the pool's ParkingLimit allows. If no room is left, a
/// bucket keeps no blocks here.
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
    /// Accepts a freed block. Called when `push` found no room.
    void push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept;

    /// Returns whether `block`, of this bucket, lies in one of the bucket's two magazines.
    bool parks(unsigned bucket, const void* block) noexcept;
    /// Gives all magazines with their blocks to the depots.
    void give_back_blocks() noexcept;
    /// Gives all magazines with their blocks to the depots, and large blocks to the page heap.
    void give_back_all(pages::Changes& changes) noexcept;
    /// Counts all parked blocks as lost and parks nothing from now on. For the cache of a thread
    /// that does not exist in the child of a fork.
    void abandon() noexcept;

    // Large blocks (blocks/cache_large.hpp). `large` is the pool's object for them.
    /// Takes a kept block that fits a request for `pages` pages, and marks it as in use. Returns
    /// nullptr if there is none. The pool counts kept blocks as held, so its total does not change.
    pages::Span* take_large(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Keeps a large block that this thread freed. Returns false, and leaves the block to the
    /// caller, if there is no room. The pool continues to count it as held.
    bool keep_large(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Does what `take_large` does if the block that was put in last fits. Returns nullptr if it
    /// does not, or if another thread is taking back blocks. Inline, without a call.
    pages::Span* take_large_at_once(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Does what `keep_large` does if this thread's room suffices and retention sets no limit.
    /// Returns false otherwise, or if another thread is taking back blocks. Inline, without a call.
    bool keep_large_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Gives all kept large blocks to the page heap. Returns their bytes.
    std::size_t give_back_large(pages::Changes& changes) noexcept;
    /// Gives the large blocks that were freed before the last whole period to the page heap.
    /// Returns their bytes.
    std::size_t give_back_unneeded_large(pages::Changes& changes) noexcept;

    // Taking back of parked blocks by another thread, which holds the registry's lock. The calls
    // come in this order, with a fence of all threads before `close` and before `take_back`.
    void claim() noexcept { lock_.claim(); }
    /// Makes the inline paths find no block and no room. Returns false, and does nothing, if the
    /// owner is inside a slow path.
    bool close() noexcept;
    /// Returns all blocks to their spans.
    void take_back(pages::Changes& changes) noexcept;
    void end_claim() noexcept { lock_.end_claim(); }
    /// Returns whether the owner made no call since the previous query. If it keeps large blocks,
    /// only calls for large blocks count. REQUIRES: the registry's lock is held.
    bool was_idle() noexcept;
    /// The bytes that its magazines may hold, by their capacities.
    std::size_t may_park_bytes() const noexcept {
        return may_park_bytes_.load(std::memory_order_relaxed);
    }
    /// The bytes of large blocks that this thread may keep.
    std::size_t may_park_large_bytes() const noexcept {
        return may_park_large_bytes_.load(std::memory_order_relaxed);
    }

    /// True on every 16th trip to a depot or to spans. The pool then checks whether a retention
    /// period has ended, which reads the clock.
    bool is_time_to_look() const noexcept { return trips_ % 16 == 0; }
    // Used by the pool on slow paths of the thread.
    /// What `bytes_to_sample` counts down to.
    watch::Countdown countdown;

    /// Determines which addresses inline frees recognize; see BucketSet::hides_frees.
    void set_first_unguarded() noexcept;

    /// The table of the thread that uses the cache. Under the registry's lock.
    ThreadCaches* table = nullptr;

    // Of the marked set (cache_marked.cpp). Its loaded magazine holds free blocks below the bottom
    // that inline paths see, and above it *exposed* ones, which are charged to the budget of the
    // thread's scope and marked with it.
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
    /// The thread's cache of the marked set, if this is one of the first set of a pool; nullptr if
    /// there is none. Written under the registry's lock.
    Cache* marked = nullptr;
    /// In the thread's list of caches that expose blocks (thread_caches.hpp).
    Cache* next_exposing = nullptr;
    bool is_listed = false;

    BucketSet& set() const noexcept { return *set_; }
    statistics::OwnedCounters& owned_counters() const noexcept { return *owned_counters_; }

private:
    struct Side {
        Magazine* loaded = nullptr;
        void** bottom = nullptr;   // after `close`: the first block of the loaded magazine
        void** exposed = nullptr;  // after `close`: the first one that inline paths saw
        Magazine* spare = nullptr;
        std::uint16_t capacity = 0;
        // The most blocks that the loaded magazine may hold. It exceeds `capacity` after a fuller
        // magazine of another thread came from the depot.
        std::uint16_t largest = 0;
        bool may_park = false;       // room for `capacity` and `largest` blocks was reserved
        bool went_to_depot = false;  // since the capacity last changed
        // Of a cache of the marked set: the blocks to expose next, beyond one, as a power of two.
        std::uint8_t more_to_expose = 0;
        std::uint64_t seen = 0;  // operations at the last check for idle buckets
    };

    /// A slow path of the owner. While this object exists, no other thread takes back blocks.
    class SlowCall {
    public:
        explicit SlowCall(Cache& cache) noexcept : cache_(cache) { cache.enter_slow_call(); }
        ~SlowCall() { cache_.lock_.unlock(); }
        SlowCall(const SlowCall&) = delete;
        SlowCall& operator=(const SlowCall&) = delete;

    private:
        Cache& cache_;
    };
    void enter_slow_call() noexcept;
    void open_again(unsigned bucket) noexcept;

    bool refill(unsigned bucket, pages::SlowPath& path) noexcept;
    bool load_from_depot(unsigned bucket, pages::Changes& changes) noexcept;
    bool load_from_spans(unsigned bucket, pages::SlowPath& path) noexcept;
    unsigned take_from_spans(unsigned bucket, void** blocks, pages::SlowPath& path) noexcept;
    bool make_room(unsigned bucket, pages::Changes& changes) noexcept;
    bool load_empty(unsigned bucket, pages::Changes& changes) noexcept;

    void push_marked(unsigned bucket, void* block) noexcept;
    void count_push(unsigned bucket) noexcept;
    bool expose(unsigned bucket, pages::SlowPath& path) noexcept;
    void mark_exposed(unsigned bucket, void** from, void** to, base::BlockMark* mark) noexcept;
    std::size_t conceal(unsigned bucket) noexcept;
    void** room_end(unsigned bucket) const noexcept;
    void load(unsigned bucket, Magazine& magazine) noexcept;
    void unload(unsigned bucket) noexcept;
    void swap(unsigned bucket) noexcept;
    void give(unsigned bucket, Magazine*& magazine) noexcept;
    void give_back(unsigned bucket) noexcept;

    bool may_park(unsigned bucket, pages::Changes& changes) noexcept;
    void park_no_more(unsigned bucket) noexcept;
    bool grow(unsigned bucket, pages::Changes& changes) noexcept;
    bool make_larger(unsigned bucket, unsigned capacity, unsigned largest,
                     pages::Changes& changes) noexcept;
    void open_to_capacity(unsigned bucket) noexcept;
    std::size_t room(unsigned bucket) const noexcept;
    void forget_growth(unsigned bucket) noexcept;
    void bring_home(unsigned bucket, void** blocks, unsigned count,
                    pages::Changes& changes) noexcept;
    void count_trip() noexcept;
    void give_back_idle() noexcept;
    bool make_large_room(const pages::Span& span) noexcept;
    void count_large() noexcept;
    std::size_t empty_large_before(std::uint32_t period, pages::Changes& changes) noexcept;
    std::size_t empty_large(pages::Changes& changes) noexcept;
    void count_taken(unsigned bucket, std::size_t blocks) noexcept;
    void count_returned(unsigned bucket, std::size_t blocks) noexcept;

    Side sides_[detail::bucket_count];
    BucketSet* set_ = nullptr;
    statistics::OwnedCounters* owned_counters_ = nullptr;
    unsigned trips_ = 0;
    std::size_t capacity_bytes_ = 0;  // both magazines of all buckets, whether they park or not
    BiasedLock lock_;                 // guards all but the fast path's part
    bool was_closed_ = false;
    // The sum of `room` of the buckets that may park. Relaxed: other threads read an estimate.
    std::atomic<std::size_t> may_park_bytes_ = 0;
    std::atomic<std::size_t> may_park_large_bytes_ = 0;
    std::atomic<detail::BudgetNode*> exposed_to_ = nullptr;
    LargeMagazine large_;
    std::uint64_t seen_operations_ = 0;  // guarded by the registry's lock, as is the next
    std::uint64_t seen_large_operations_ = 0;
};

}  // namespace tensorpool::blocks
