#include "blocks/cache.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/some_buckets.hpp"

namespace tensorpool::blocks {
namespace {

using testing::LooseCache;
using testing::PoolParts;

constexpr unsigned bucket_64 = 0;
constexpr unsigned bucket_1k = 4;
constexpr unsigned bucket_64k = 10;
constexpr std::size_t max_parked_bytes = std::size_t{4} << 20;

class ParkedRoomTest : public ::testing::Test {
protected:
    ParkedRoomTest() {
        room_.begin(pool_.set);
        room_.trips = 1;  // other threads are searched on every 64th
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            pairs_[bucket].begin(pool_.set[bucket], views_[bucket], counted_[bucket]);
        }
        pool_.set.shared().parking_limit.add_thread();
    }
    bool grow(MagazinePair& pair) {
        room_.grow(pair, PoolParts::path());
        return room_.grow(pair, PoolParts::path());
    }
    std::size_t taken() { return pool_.set.shared().parking_limit.taken(); }

    PoolParts pool_;
    ParkedRoom room_;
    detail::LoadedMagazine views_[detail::bucket_count];
    detail::BucketCounters counted_[detail::bucket_count] = {};
    MagazinePair pairs_[detail::bucket_count];
    MagazinePair& pair_ = pairs_[bucket_1k];
};

TEST_F(ParkedRoomTest, TakesRoomForBothMagazinesAndGivesItBack) {
    ASSERT_TRUE(room_.take(pair_));
    EXPECT_EQ(pair_.usable_capacity(), 16U);
    EXPECT_EQ(room_.bytes(), 2 * 16 * 1024U);
    EXPECT_EQ(taken(), room_.bytes());
    room_.give_back(pair_);
    room_.give_back(pair_);
    EXPECT_EQ(pair_.usable_capacity(), 0U);
    EXPECT_EQ(room_.bytes(), 0U);
    EXPECT_EQ(taken(), 0U);
}

TEST_F(ParkedRoomTest, CapacityDoublesOnEverySecondTripUpToItsMaximum) {
    ASSERT_TRUE(room_.take(pair_));
    EXPECT_FALSE(room_.grow(pair_, PoolParts::path())) << "the first trip";
    EXPECT_TRUE(room_.grow(pair_, PoolParts::path()));
    EXPECT_EQ(pair_.capacity, 32U);
    EXPECT_EQ(taken(), 2 * 32 * 1024U);
    while (grow(pair_)) {
    }
    EXPECT_EQ(pair_.capacity, pair_.loaded.bucket().traits.layout.max_in_magazine);
    EXPECT_EQ(taken(), pair_.room_bytes());
    room_.give_back(pair_);
    room_.forget_growth(pair_);
    EXPECT_EQ(pair_.capacity, 16U);
    EXPECT_EQ(taken(), 0U);
}

TEST_F(ParkedRoomTest, CapacitiesOfAllBucketsStayWithin4Mib) {
    std::size_t bytes = 0;
    for (MagazinePair& pair : pairs_) {
        ASSERT_TRUE(room_.take(pair));
        while (grow(pair)) {
        }
        bytes += 2 * pair.capacity * pair.loaded.bucket().traits.block_bytes;
    }
    EXPECT_LE(bytes, std::size_t{4} << 20);
    EXPECT_GT(bytes, std::size_t{2} << 20);
    EXPECT_LT(pairs_[bucket_64k].capacity,
              pairs_[bucket_64k].loaded.bucket().traits.layout.max_in_magazine);
}

TEST_F(ParkedRoomTest, TakesNoMoreThanTheLimitAllows) {
    ParkingLimit& limit = pool_.set.shared().parking_limit;
    ASSERT_TRUE(limit.take(limit.max_bytes()));
    EXPECT_FALSE(room_.take(pair_));
    EXPECT_EQ(pair_.usable_capacity(), 0U);
    EXPECT_EQ(room_.bytes(), 0U);
    limit.give_back(pair_.room_bytes());
    ASSERT_TRUE(room_.take(pair_));
    EXPECT_FALSE(grow(pair_));
    EXPECT_EQ(pair_.capacity, 16U);
}

TEST_F(ParkedRoomTest, FullMagazineThatDoesNotFitIsCut) {
    Magazine& full = *pair_.loaded.bucket().depot.take_empty(BucketDepot::MayMake::always);
    full.count = pair_.loaded.bucket().spans.take(full.blocks, 100, PoolParts::path());
    pair_.loaded.bucket().depot.give(full);
    ParkingLimit& limit = pool_.set.shared().parking_limit;
    ASSERT_TRUE(room_.take(pair_));
    ASSERT_TRUE(limit.take(limit.max_bytes() - limit.taken()));
    EXPECT_EQ(room_.take_full(pair_, PoolParts::path()), &full);
    EXPECT_EQ(full.count, pair_.largest);
    EXPECT_EQ(pool_.held_bytes(), pair_.largest * 1024U) << "the others are home";
    EXPECT_EQ(room_.take_full(pair_, PoolParts::path()), nullptr);
}

TEST_F(ParkedRoomTest, FullMagazineOfABusierThreadTakesMoreRoom) {
    Magazine& full = *pair_.loaded.bucket().depot.take_empty(BucketDepot::MayMake::always);
    full.count = pair_.loaded.bucket().spans.take(full.blocks, 100, PoolParts::path());
    pair_.loaded.bucket().depot.give(full);
    ASSERT_TRUE(room_.take(pair_));
    EXPECT_EQ(room_.take_full(pair_, PoolParts::path()), &full);
    EXPECT_EQ(full.count, 100U);
    EXPECT_EQ(pair_.largest, 100U);
    EXPECT_EQ(pair_.capacity, 16U);
    EXPECT_EQ(taken(), (16 + 100) * 1024U);
}

class CacheTest : public ::testing::Test {
protected:
    // Makes several trips to the depot at any capacity.
    static void use(LooseCache& cache, unsigned bucket) {
        PoolParts::deallocate(cache, bucket, PoolParts::allocate(cache, bucket, 4 * magazine_room));
    }
    static void make_busy(LooseCache& cache, unsigned bucket) {
        for (unsigned round = 0; round < 20; ++round) use(cache, bucket);
    }
    static std::size_t capacity_bytes(const LooseCache& cache) {
        std::size_t bytes = 0;
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            bytes += 2 * cache.capacity(bucket) * detail::bucket_bytes(bucket);
        }
        return bytes;
    }

    PoolParts pool_;
    LooseCache cache_{pool_};
};

class CacheOfBucket : public CacheTest, public ::testing::WithParamInterface<unsigned> {
protected:
    const unsigned bucket_ = GetParam();
    const BucketLayout& layout_ = bucket_layouts[bucket_];
};

INSTANTIATE_TEST_SUITE_P(Bucket, CacheOfBucket, testing::some_buckets());

TEST_P(CacheOfBucket, ParksNothingBeforeItsFirstBlock) {
    EXPECT_EQ(cache_.capacity(bucket_), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

TEST_P(CacheOfBucket, FirstRefillTakes16KibOfBlocks) {
    PoolParts::allocate(cache_, bucket_);
    EXPECT_EQ(cache_.capacity(bucket_), layout_.first_refill);
    EXPECT_EQ(pool_.parked_bytes(), (layout_.first_refill - 1) * detail::bucket_bytes(bucket_));
}

TEST_P(CacheOfBucket, FirstFreeOfAThreadThatNeverAllocatedParksOneBlock) {
    void* const block = pool_.allocate_direct(bucket_, 1)[0];
    PoolParts::deallocate(cache_, bucket_, block);
    EXPECT_TRUE(cache_.parks(bucket_, block));
    EXPECT_EQ(cache_.capacity(bucket_), layout_.first_refill);
}

TEST_P(CacheOfBucket, CapacityDoublesWithTripsToTheDepotUpToItsMaximum) {
    std::set<unsigned> seen;
    for (unsigned i = 0; i < 40 * magazine_room; ++i) {
        PoolParts::allocate(cache_, bucket_);
        seen.insert(cache_.capacity(bucket_));
    }
    std::set<unsigned> doubled;
    for (unsigned capacity = layout_.first_refill; capacity < layout_.max_in_magazine;
         capacity *= 2) {
        doubled.insert(capacity);
    }
    doubled.insert(layout_.max_in_magazine);
    EXPECT_EQ(seen, doubled);
}

TEST_P(CacheOfBucket, CapacityGrowsForAThreadThatOnlyFrees) {
    const std::vector<void*> blocks = pool_.allocate_direct(bucket_, 40 * magazine_room);
    PoolParts::deallocate(cache_, bucket_, blocks);
    EXPECT_EQ(cache_.capacity(bucket_), layout_.max_in_magazine);
}

TEST_P(CacheOfBucket, AllocatesEachBlockOnceInAnyOrder) {
    std::set<void*> out;
    std::vector<void*> order;
    for (unsigned round = 0; round < 60; ++round) {
        for (unsigned i = 0; i < (round * 37) % 90 + 1; ++i) {
            order.push_back(PoolParts::allocate(cache_, bucket_));
            ASSERT_TRUE(out.insert(order.back()).second);
        }
        for (unsigned i = 0; i < (round * 53) % 80 && !order.empty(); ++i) {
            const std::size_t at = (round * 7 + i * 13) % order.size();
            PoolParts::deallocate(cache_, bucket_, order[at]);
            out.erase(order[at]);
            order.erase(order.begin() + static_cast<std::ptrdiff_t>(at));
        }
    }
    EXPECT_EQ(pool_.in_use_bytes(), out.size() * detail::bucket_bytes(bucket_));
}

TEST_P(CacheOfBucket, FindsTheBlocksOfBothMagazines) {
    const std::vector<void*> blocks =
        pool_.allocate_direct(bucket_, 3 * layout_.first_refill / 2 + 1);
    PoolParts::deallocate(cache_, bucket_, blocks);
    for (void* const block : blocks) EXPECT_TRUE(cache_.parks(bucket_, block));
    void* const again = PoolParts::allocate(cache_, bucket_);
    EXPECT_FALSE(cache_.parks(bucket_, again));
}

TEST_P(CacheOfBucket, GivesBackAllBlocksOnRequest) {
    const std::vector<void*> blocks = PoolParts::allocate(cache_, bucket_, 3 * magazine_room);
    PoolParts::deallocate(cache_, bucket_, blocks);
    cache_.give_back_all(testing::PoolParts::path());
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(cache_.capacity(bucket_), 0U);
    pool_.drain();
    EXPECT_EQ(pool_.held_bytes(), 0U);
    EXPECT_EQ(pool_.capacity_of(bucket_), 0U);
    EXPECT_EQ(pool_.set.magazine_bytes(), 0U);
}

TEST_P(CacheOfBucket, WorksAfterGivingBackAllBlocks) {
    PoolParts::allocate(cache_, bucket_, 100);
    cache_.give_back_all(testing::PoolParts::path());
    EXPECT_EQ(PoolParts::allocate(cache_, bucket_, 100).size(), 100U);
    EXPECT_EQ(pool_.in_use_bytes(), 200 * detail::bucket_bytes(bucket_));
}

TEST_F(CacheTest, OneBlockOfEachBucketParksLessThan512Kib) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        PoolParts::allocate(cache_, bucket);
    }
    EXPECT_GT(pool_.parked_bytes(), 0U);
    EXPECT_LT(pool_.parked_bytes(), std::size_t{512} << 10);
}

TEST_F(CacheTest, MagazinesOfAllBucketsStayWithin4Mib) {
    // Reserves memory, because a pool that has to grow first takes parked blocks of other sizes.
    ASSERT_TRUE(pool_.heap.reserve(std::size_t{256} << 20, PoolParts::path()));
    // Uses the buckets in turn, so that none is idle. Together they would exceed the limit.
    for (unsigned round = 0; round < 40; ++round) {
        for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
            use(cache_, bucket);
            ASSERT_LE(capacity_bytes(cache_), max_parked_bytes) << bucket;
            ASSERT_LE(pool_.parked_bytes(), max_parked_bytes) << bucket;
        }
    }
    EXPECT_GT(capacity_bytes(cache_), max_parked_bytes / 2);
}

TEST_F(CacheTest, BucketWithoutRoomToGrowKeepsASmallerCapacity) {
    for (unsigned round = 0; round < 40; ++round) {
        for (unsigned bucket = detail::bucket_count; bucket-- > 0;) use(cache_, bucket);
    }
    unsigned small = 0;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        small += cache_.capacity(bucket) < bucket_layouts[bucket].max_in_magazine;
        const std::vector<void*> blocks = PoolParts::allocate(cache_, bucket, 500);
        EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), 500U);
    }
    EXPECT_GT(small, 0U);
}

TEST_F(CacheTest, IdleBucketGivesItsBlocksBackWhileAnotherIsBusy) {
    make_busy(cache_, bucket_64k);
    ASSERT_GT(pool_.sums().buckets[bucket_64k].parked_bytes, 0U);
    ASSERT_GT(cache_.capacity(bucket_64k), bucket_layouts[bucket_64k].first_refill);
    for (unsigned round = 0; round < 100; ++round) make_busy(cache_, bucket_64);
    EXPECT_EQ(pool_.sums().buckets[bucket_64k].parked_bytes, 0U);
    PoolParts::allocate(cache_, bucket_64k);
    EXPECT_LE(cache_.capacity(bucket_64k), bucket_layouts[bucket_64k].max_in_magazine);
}

TEST_F(CacheTest, RoomOfAnIdleBucketIsAvailableToOthers) {
    make_busy(cache_, bucket_64k);
    make_busy(cache_, bucket_64k - 1);
    make_busy(cache_, bucket_64k - 2);
    for (unsigned round = 0; round < 100; ++round) make_busy(cache_, bucket_64);
    for (unsigned bucket = 0; bucket <= bucket_64k - 3; ++bucket) {
        make_busy(cache_, bucket);
        EXPECT_EQ(cache_.capacity(bucket), bucket_layouts[bucket].max_in_magazine) << bucket;
    }
}

TEST_F(CacheTest, MagazineAboveItsCapacityIsEmptiedToTheLastBlock) {
    LooseCache other(pool_);
    make_busy(other, bucket_1k);
    const std::vector<void*> blocks = pool_.allocate_direct(bucket_1k, 2 * magazine_room);
    PoolParts::deallocate(other, bucket_1k, blocks);
    other.give_back_all(testing::PoolParts::path());
    const std::size_t taken_before = pool_.sums().buckets[bucket_1k].capacity_bytes;

    PoolParts::allocate(cache_, bucket_1k);
    ASSERT_GT(cache_.capacity(bucket_1k), bucket_layouts[bucket_1k].first_refill);
    std::set<void*> out;
    while (void* const block = cache_.pop(bucket_1k, 1)) EXPECT_TRUE(out.insert(block).second);
    PoolParts::deallocate(cache_, bucket_1k, {out.begin(), out.end()});
    EXPECT_EQ(pool_.sums().buckets[bucket_1k].capacity_bytes, taken_before);
}

TEST_F(CacheTest, MagazineOfABusierThreadAddsAtMostOneMagazineToABucket) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        LooseCache busy(pool_);
        make_busy(busy, bucket);
        const unsigned full = bucket_layouts[bucket].max_in_magazine;
        busy.give_back_all(testing::PoolParts::path());
        pool_.set[bucket].depot.drain(BucketDepot::Magazines::destroy, PoolParts::path());
        PoolParts::deallocate(busy, bucket, pool_.allocate_direct(bucket, full));
        busy.give_back_all(testing::PoolParts::path());
    }
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        // One full magazine of a busier thread, and a first one of its own.
        PoolParts::deallocate(cache_, bucket, PoolParts::allocate(cache_, bucket));
        const unsigned first = bucket_layouts[bucket].first_refill;
        PoolParts::deallocate(cache_, bucket, pool_.allocate_direct(bucket, first));
        const std::size_t max_blocks = first + bucket_layouts[bucket].max_in_magazine;
        EXPECT_LE(pool_.sums().buckets[bucket].parked_bytes,
                  max_blocks * detail::bucket_bytes(bucket));
    }
}

// Counters ---------------------------------------------------------------------------------------

class CacheCounters : public ::testing::Test {
protected:
    /// The number of blocks in the cache's two magazines, found by testing every block that was
    /// ever taken.
    std::size_t lie_in(LooseCache& cache, unsigned bucket) const {
        return static_cast<std::size_t>(std::count_if(
            all_.begin(), all_.end(), [&](void* block) { return cache.parks(bucket, block); }));
    }

    void* allocate(LooseCache& cache, unsigned bucket) {
        void* const block = PoolParts::allocate(cache, bucket);
        if (!std::binary_search(all_.begin(), all_.end(), block)) look_for_all(bucket);
        return block;
    }
    // Collects all carved blocks of the bucket's spans.
    void look_for_all(unsigned bucket) {
        const pages::PageMap& map = pool_.heap.space().map();
        all_.clear();
        const pages::PageNumber end = std::min(first_page_ + 20'000, map.page_count());
        for (pages::PageNumber page = first_page_; page < end; ++page) {
            const pages::PageEntry entry = map.at(page);
            if (entry.bucket() != bucket || entry.pool_number() != pool_.heap.pool_number())
                continue;
            if (entry.span()->first_page != page) continue;
            for (unsigned i = 0; i < entry.span()->carved; ++i) {
                all_.push_back(map.address_of(page) + i * bucket_layouts[bucket].stride);
            }
        }
    }

    PoolParts pool_;
    LooseCache cache_{pool_};
    pages::PageNumber first_page_ = [this] {
        const std::vector<void*> block = pool_.take(bucket_1k, 1);
        const pages::PageNumber page = pool_.heap.space().map().page_of(block[0]);
        pool_.bring_home(bucket_1k, block);
        return page;
    }();
    std::vector<void*> all_;
};

TEST_F(CacheCounters, ParkedBytesAreThoseInTheMagazinesOfAllThreads) {
    LooseCache other(pool_);
    std::minstd_rand random(1);
    std::vector<void*> out;
    for (unsigned step = 0; step < 6000; ++step) {
        LooseCache& cache = random() % 3 == 0 ? other : cache_;
        if (out.empty() || random() % 100 < (step / 500 % 2 == 0 ? 70U : 30U)) {
            out.push_back(PoolParts::allocate(cache, bucket_1k));
        } else {
            std::swap(out[random() % out.size()], out.back());
            PoolParts::deallocate(cache, bucket_1k, out.back());
            out.pop_back();
        }
        ASSERT_EQ(pool_.in_use_bytes(), out.size() * 1024);
        ASSERT_GE(pool_.held_bytes(), pool_.in_use_bytes() + pool_.parked_bytes());
        if (step % 100 != 0) continue;
        look_for_all(bucket_1k);
        ASSERT_EQ(pool_.parked_bytes(),
                  (lie_in(cache_, bucket_1k) + lie_in(other, bucket_1k)) * 1024);
    }
}

TEST_F(CacheCounters, MissesAreAllocationsThatFoundBothMagazinesEmpty) {
    // Enough blocks for both magazines, so that a swap of the two serves one allocation.
    const unsigned first = bucket_layouts[bucket_1k].first_refill;
    const std::vector<void*> blocks = pool_.allocate_direct(bucket_1k, 3 * first);
    PoolParts::deallocate(cache_, bucket_1k, blocks);
    ASSERT_EQ(pool_.parked_bytes(), blocks.size() * 1024);
    PoolParts::allocate(cache_, bucket_1k, blocks.size());
    EXPECT_EQ(cache_.counters->buckets[bucket_1k].misses, 0U);
    PoolParts::allocate(cache_, bucket_1k);
    EXPECT_EQ(cache_.counters->buckets[bucket_1k].misses, 1U);
    EXPECT_EQ(cache_.counters->buckets[bucket_1k].depot_hits, 0U);
}

TEST_F(CacheCounters, DepotHitsAreMissesThatAnotherThreadsMagazineServed) {
    LooseCache other(pool_);
    PoolParts::deallocate(other, bucket_1k, pool_.allocate_direct(bucket_1k, 10));
    other.give_back_all(testing::PoolParts::path());
    PoolParts::allocate(cache_, bucket_1k, 10);
    EXPECT_EQ(cache_.counters->buckets[bucket_1k].misses, 1U);
    EXPECT_EQ(cache_.counters->buckets[bucket_1k].depot_hits, 1U);
}

TEST_F(CacheCounters, RefusedAllocationIsNotCounted) {
    PoolParts pool({.max_capacity = 4096});
    LooseCache cache(pool);
    EXPECT_EQ(PoolParts::allocate(cache, detail::bucket_count - 1), nullptr);
    const BucketStatistics values = pool.sums().buckets[detail::bucket_count - 1];
    EXPECT_EQ(values.allocations, 0U);
    EXPECT_EQ(values.requested_bytes, 0U);
    EXPECT_EQ(values.cache_misses, 0U);
    EXPECT_EQ(values.parked_bytes, 0U);
}

TEST_F(CacheCounters, HeldIsExactlyWhatIsInUseParkedAndInDepots) {
    std::vector<std::vector<void*>> out(detail::bucket_count);
    std::minstd_rand random(2);
    std::uint64_t peak = 0;
    for (unsigned step = 0; step < 30'000; ++step) {
        const auto bucket = static_cast<unsigned>(random() % detail::bucket_count);
        if (out[bucket].empty() || random() % 100 < (step / 4000 % 2 == 0 ? 65U : 35U)) {
            out[bucket].push_back(PoolParts::allocate(cache_, bucket));
        } else {
            PoolParts::deallocate(cache_, bucket, out[bucket].back());
            out[bucket].pop_back();
        }
        const PoolStatistics values = pool_.sums();
        const std::uint64_t held = pool_.held_bytes();
        peak = std::max(peak, held);
        ASSERT_EQ(held, values.in_use_bytes + values.parked_bytes + values.depot_bytes);
    }
    // A step takes blocks out of spans before it returns others, or the other way round.
    EXPECT_GE(pool_.totals.peak_held_bytes, peak);
    EXPECT_LE(pool_.totals.peak_held_bytes, peak + (std::size_t{1} << 20));
}

TEST_F(CacheCounters, HeldReturnsToZeroWithTheLastBlock) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        PoolParts::deallocate(cache_, bucket, PoolParts::allocate(cache_, bucket, 500));
    }
    cache_.give_back_all(testing::PoolParts::path());
    EXPECT_EQ(pool_.held_bytes(), pool_.sums().depot_bytes);
    pool_.drain();
    EXPECT_EQ(pool_.held_bytes(), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
}

TEST_F(CacheCounters, BlocksOfAnAbandonedCacheCountAsLostOnce) {
    const std::vector<void*> blocks = PoolParts::allocate(cache_, bucket_1k, 3);
    const std::size_t parked = pool_.parked_bytes();
    ASSERT_GT(parked, 0U);
    abandon(cache_);
    count_lost(pool_.set);
    count_lost(pool_.set);
    EXPECT_EQ(pool_.totals.lost_bytes, parked);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.in_use_bytes(), 3U * 1024);
    EXPECT_EQ(pool_.held_bytes(), 3U * 1024);
}

TEST_F(CacheCounters, CacheAbandonedInsideACallKeepsHeldNonNegative) {
    PoolParts::deallocate(cache_, bucket_1k, PoolParts::allocate(cache_, bucket_1k));
    // As if the process had been forked between two updates of the counters.
    detail::add(cache_.counters->buckets[bucket_1k].taken, 10'000);
    detail::add(cache_.counters->large.parked_bytes, 10'000);
    pool_.heap.kept().note_elsewhere(10'000);
    abandon(cache_);
    count_lost(pool_.set);
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

TEST_F(CacheCounters, NextThreadContinuesReusedCounters) {
    statistics::OwnedCounters& owned = cache_.owned_counters();
    PoolParts::deallocate(cache_, bucket_1k, PoolParts::allocate(cache_, bucket_1k, 100));
    cache_.give_back_all(testing::PoolParts::path());
    Cache next;
    next.begin(pool_.set, owned);
    void* const block = PoolParts::allocate(next, bucket_1k);
    EXPECT_EQ(pool_.sums().buckets[bucket_1k].allocations, 101U);
    EXPECT_EQ(pool_.sums().buckets[bucket_1k].in_use_bytes, 1024U);
    PoolParts::deallocate(next, bucket_1k, block);
    next.give_back_all(testing::PoolParts::path());
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    pool_.drain();
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

}  // namespace
}  // namespace tensorpool::blocks
