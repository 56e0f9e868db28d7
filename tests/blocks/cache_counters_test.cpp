// The counters of a cache.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "blocks/cache.hpp"
#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::LooseCache;
using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

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
    EXPECT_EQ(pool_.totals.lost_bytes, parked);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.in_use_bytes(), 3U * 1024);
    EXPECT_EQ(pool_.held_bytes(), 3U * 1024);
}

TEST_F(CacheCounters, CacheAbandonedInsideACallKeepsHeldNonNegative) {
    PoolParts::deallocate(cache_, bucket_1k, PoolParts::allocate(cache_, bucket_1k));
    // As if the process had been forked between two updates of the counters.
    detail::add(cache_.counters->buckets[bucket_1k].taken, 10'000);
    abandon(cache_);
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
