#pragma once

#include <atomic>
#include <boost/intrusive/list.hpp>
#include <cstdint>

#include <tensorpool/detail/thread_cache.hpp>

#include "blocks/biased_lock.hpp"
#include "blocks/bucket.hpp"
#include "blocks/large_magazine.hpp"
#include "statistics/segment/pool_counters.hpp"

namespace tensorpool::blocks {

class BucketSet;

}  // namespace tensorpool::blocks

namespace tensorpool::pages {
class LargeBlocks;
}  // namespace tensorpool::pages

namespace tensorpool::blocks {

/// Whose free blocks are brought home (ThreadRegistry::take_back).
enum class TakeFrom : std::uint8_t { idle, enough, everyone };

/// The slow half of a thread's cache: two magazines a bucket, loaded and spare, and how large they
/// may be. Used by its thread; by whoever holds the registry's lock when the thread has ended, the
/// pool dies, a fork has left the thread behind, or others need what lies in it.
///
/// Capacities begin at what 16 KiB hold, double when a bucket goes to its depot again, and fall
/// back when the bucket has been idle; both magazines of all buckets together may hold 4 MiB at
/// most, and those of all threads what the pool's ParkingLimit says. Where that leaves no room, a
/// bucket keeps no blocks here.
class Cache : public detail::ThreadCache,
              public boost::intrusive::list_base_hook<
                  boost::intrusive::link_mode<boost::intrusive::normal_link>> {
public:
    /// Makes it a cache of this set, counting in `slot`. It parks nothing yet.
    void begin(BucketSet& set, statistics::OwnedCounters& slot) noexcept;

    /// A block when `pop` found none: from the spare, the depot or spans. nullptr when refused.
    void* pop_slow(unsigned bucket, std::size_t requested_bytes, pages::SlowPath& path) noexcept;
    /// Takes a block when `push` found no room.
    void push_slow(unsigned bucket, void* block, pages::Changes& changes) noexcept;

    /// Whether a block of this bucket lies in one of its two magazines.
    bool parks(unsigned bucket, const void* block) noexcept;
    /// Gives all blocks of buckets, and magazines, to the depots.
    void give_back_blocks() noexcept;
    /// Gives all blocks of buckets, and magazines, to the depots, and large blocks to the page
    /// heap.
    void give_back_all(pages::Changes& changes) noexcept;
    /// Parks nothing any more, and what it held counts as lost: for a thread that a fork left
    /// behind.
    void abandon() noexcept;

    // Of large blocks, of which `large` are the pool's (blocks/cache_large.hpp).
    /// Takes a block that this thread keeps and that a request for `pages` pages gets; nullptr if
    /// there is none. It is marked as in use then, and the pool counts it as held, as it did
    /// before.
    pages::Span* take_large(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Keeps a large block that its thread freed. False, and it is still the caller's, where there
    /// is no room. The pool goes on counting it as held.
    bool keep_large(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Does what `take_large` does if the block that was put in last fits; otherwise, and where
    /// another thread takes back what lies here, returns nullptr. Inline, without a call.
    pages::Span* take_large_at_once(pages::PageCount pages, pages::LargeBlocks& large) noexcept;
    /// Does what `keep_large` does if this thread's room suffices and retention limits nothing;
    /// otherwise, and where another thread takes back what lies here, returns false. Inline,
    /// without a call.
    bool keep_large_at_once(pages::Span& span, pages::LargeBlocks& large) noexcept;
    /// Gives all of them to the page heap; the bytes.
    std::size_t give_back_large(pages::Changes& changes) noexcept;
    /// Those that were freed before the last whole period.
    std::size_t give_back_unneeded_large(pages::Changes& changes) noexcept;

    /// Counts bytes as held by this thread, or no longer, out of what it has taken ahead.
    void charge(std::size_t bytes) noexcept;
    void refund(std::size_t bytes) noexcept;
    /// Taken ahead at most; above twice as much, what is more goes back.
    static constexpr std::size_t max_credit_bytes = std::size_t{512} << 10;

    // What lies here taken back by another thread, which holds the registry's lock. In this order,
    // with a fence of all threads before the second and the third.
    void claim() noexcept { lock_.claim(); }
    /// False, and nothing done, when its thread is in the midst of a slow path.
    bool close() noexcept;
    /// Brings all blocks home.
    void take_back(pages::Changes& changes) noexcept;
    void end_claim() noexcept { lock_.end_claim(); }
    /// Whether its thread has called nothing since this was asked last; where it keeps large
    /// blocks, nothing for large ones. Asked under that lock.
    bool was_idle() noexcept;
    /// What its magazines may hold, by their capacities.
    std::size_t may_park_bytes() const noexcept {
        return may_park_bytes_.load(std::memory_order_relaxed);
    }
    /// The same for large blocks.
    std::size_t may_park_large_bytes() const noexcept {
        return may_park_large_bytes_.load(std::memory_order_relaxed);
    }

    /// Now and then, by trips to depots: whoever looks at the clock shall do so then.
    bool is_time_to_look() const noexcept { return trips_ % 16 == 0; }
    BucketSet& set() const noexcept { return *set_; }
    statistics::OwnedCounters& slot() const noexcept { return *slot_; }

private:
    struct Side {
        Magazine* loaded = nullptr;
        void** bottom = nullptr;  // after `close`: of the loaded magazine
        Magazine* spare = nullptr;
        std::uint16_t capacity = 0;
        std::uint16_t largest = 0;   // magazine that may be loaded: another thread's holds more
        bool may_park = false;       // room for `capacity` and `largest` is taken of the pool's
        bool went_to_depot = false;  // since the capacity last changed
        std::uint64_t seen = 0;      // operations at the last look for idle buckets
    };

    /// A call of the thread itself: no other takes back what lies here while it lives.
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
    statistics::OwnedCounters* slot_ = nullptr;
    unsigned trips_ = 0;
    std::size_t capacity_bytes_ = 0;  // of both magazines of all buckets, whether they park or not
    BiasedLock lock_;                 // of all but the fast path's part and `credit_bytes_`
    bool was_closed_ = false;
    // The rooms of the buckets that may park. Relaxed: for others it is a figure.
    std::atomic<std::size_t> may_park_bytes_ = 0;
    std::atomic<std::size_t> may_park_large_bytes_ = 0;
    LargeMagazine large_;
    std::uint64_t seen_operations_ = 0;  // under the registry's lock
    std::uint64_t seen_large_operations_ = 0;
    // Bytes that the pool counts as held and this thread does not hold: taken ahead, so that not
    // every trip to a depot has to add to a word that all threads share.
    std::size_t credit_bytes_ = 0;
};

}  // namespace tensorpool::blocks
