#pragma once

#include <atomic>
#include <cstddef>

#include "blocks/magazine_pair.hpp"

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
    bool grow(MagazinePair& pair, pages::Changes& changes) noexcept;
    /// Takes a magazine with blocks from the bucket's depot. Returns nullptr if there is none. If
    /// there is no room for all its blocks, the others go home. REQUIRES: the bucket has room.
    Magazine* take_full(MagazinePair& pair, pages::Changes& changes) noexcept;
    /// Sets a bucket's capacity to the first one. REQUIRES: the bucket parks nothing.
    void forget_growth(MagazinePair& pair) noexcept;

    /// The bytes that the magazines may hold. Relaxed: other threads read an estimate.
    std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    /// The number of trips of the cache to depots and to spans.
    unsigned trips = 0;
    /// True on every 16th trip. The pool then checks whether a retention period has ended, which
    /// reads the clock.
    bool is_time_to_look() const noexcept { return trips % 16 == 0; }

private:
    bool enlarge(MagazinePair& pair, unsigned capacity, unsigned largest,
                 pages::Changes& changes) noexcept;
    void add(std::size_t bytes) noexcept {
        bytes_.store(this->bytes() + bytes, std::memory_order_relaxed);
    }

    BucketSet* set_ = nullptr;
    std::size_t capacity_bytes_ = 0;  // both magazines of all buckets, whether they park or not
    std::atomic<std::size_t> bytes_ = 0;
};

}  // namespace tensorpool::blocks
