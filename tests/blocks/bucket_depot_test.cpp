#include "blocks/magazine_pair.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "blocks/pool_parts.hpp"
#include "blocks/scarce_memory.hpp"

namespace tensorpool::blocks {
namespace {

using testing::LooseCache;
using testing::PoolParts;
using testing::ScarceMemory;
using MayMake = BucketDepot::MayMake;

constexpr unsigned bucket_64 = 0;
constexpr unsigned bucket_1k = 4;
constexpr std::size_t min_array_bytes = std::size_t{256} << 10;

class BucketDepotTest : public ::testing::Test {
protected:
    Magazine* filled_magazine(unsigned blocks) {
        Magazine* const magazine = bucket_.depot.take_empty(MayMake::always);
        magazine->count = bucket_.spans.take(magazine->blocks, blocks, PoolParts::path());
        EXPECT_EQ(magazine->count, blocks);
        return magazine;
    }
    void drain(BucketDepot::Magazines magazines) {
        bucket_.depot.drain(magazines, PoolParts::path());
    }

    // Uses up all mapped records, so that the next one needs memory from the system.
    void use_up_records() {
        const ScarceMemory scarce;
        while (pool_.records.allocate(8, 8) != nullptr) {
        }
    }

    PoolParts pool_;
    Bucket& bucket_ = pool_.set[bucket_1k];
};

TEST_F(BucketDepotTest, HasNoMagazinesBeforeFirstUse) {
    const std::size_t records = pool_.records.bytes_held();
    EXPECT_EQ(bucket_.depot.take_full(), nullptr);
    drain(BucketDepot::Magazines::keep);
    drain(BucketDepot::Magazines::destroy);
    EXPECT_EQ(pool_.records.bytes_held(), records);
    EXPECT_EQ(pool_.set.magazine_bytes(), 0U);
}

TEST_F(BucketDepotTest, SortsMagazinesIntoFullAndEmpty) {
    Magazine* const magazine = filled_magazine(1);
    bucket_.depot.give(*magazine);
    EXPECT_NE(bucket_.depot.take_empty(MayMake::always), magazine);
    EXPECT_EQ(bucket_.depot.take_full(), magazine);
    EXPECT_EQ(bucket_.depot.take_full(), nullptr);
    bucket_.spans.bring_home(magazine->blocks, magazine->count, PoolParts::path());
    magazine->count = 0;
    bucket_.depot.give(*magazine);
    EXPECT_EQ(bucket_.depot.take_full(), nullptr);
    EXPECT_EQ(bucket_.depot.take_empty(MayMake::always), magazine);
}

TEST_F(BucketDepotTest, BucketsDoNotShareMagazines) {
    Bucket& other = pool_.set[bucket_64];
    bucket_.depot.give(*filled_magazine(3));
    EXPECT_EQ(other.depot.take_full(), nullptr);
    other.depot.drain(BucketDepot::Magazines::destroy, PoolParts::path());
    EXPECT_NE(bucket_.depot.take_full(), nullptr);
}

TEST_F(BucketDepotTest, DrainReturnsAllBlocksAndCanKeepMagazines) {
    Magazine* const first = filled_magazine(16);
    Magazine* const second = filled_magazine(5);
    bucket_.depot.give(*first);
    bucket_.depot.give(*second);
    drain(BucketDepot::Magazines::keep);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
    EXPECT_EQ(pool_.set.magazine_bytes(), 2 * sizeof(Magazine));
    EXPECT_EQ(bucket_.depot.take_full(), nullptr);
    Magazine* const one = bucket_.depot.take_empty(MayMake::within_limit);
    EXPECT_TRUE(one == first || one == second);
    EXPECT_EQ(one->count, 0U);
}

TEST_F(BucketDepotTest, DrainCanDestroyMagazines) {
    bucket_.depot.give(*filled_magazine(16));
    bucket_.depot.give(*filled_magazine(5));
    bucket_.depot.give(*bucket_.depot.take_empty(MayMake::always));
    Magazine* const in_use = filled_magazine(1);
    drain(BucketDepot::Magazines::destroy);
    EXPECT_EQ(pool_.set.magazine_bytes(), sizeof(Magazine));
    bucket_.depot.give(*in_use);
    drain(BucketDepot::Magazines::destroy);
    EXPECT_EQ(pool_.set.magazine_bytes(), 0U);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
}

TEST_F(BucketDepotTest, KeepsNoMagazineWhileSpansAreMoreThanHalfEmpty) {
    std::vector<void*> blocks = pool_.take(bucket_1k, 32 << 10);
    EXPECT_TRUE(bucket_.depot.may_keep(128));
    // Keeps a block of every span in use, so that no span becomes entirely free.
    std::vector<void*> most;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        if (i % 16 != 0) most.push_back(blocks[i]);
    }
    pool_.bring_home(bucket_1k, most);
    EXPECT_FALSE(bucket_.depot.may_keep(128));
    bucket_.depot.give(*filled_magazine(100));
    EXPECT_EQ(bucket_.depot.bytes(), 100U << 10);
}

TEST_F(BucketDepotTest, ReturnsUntouchedBlocksAfterAnEighthWasExchanged) {
    constexpr unsigned magazines = 40;
    constexpr std::size_t magazine_bytes = 128 << 10;
    const auto exchange_an_eighth = [&] {
        for (unsigned i = 0; i < magazines / 8; ++i) {
            EXPECT_EQ(bucket_.depot.bytes(), magazines * magazine_bytes) << i;
            bucket_.depot.drain_after_exchange(PoolParts::path());
            bucket_.depot.give(*bucket_.depot.take_full());
        }
        bucket_.depot.drain_after_exchange(PoolParts::path());
    };
    for (unsigned i = 0; i < magazines; ++i) bucket_.depot.give(*filled_magazine(128));
    exchange_an_eighth();
    EXPECT_EQ(bucket_.depot.bytes(), magazines * magazine_bytes)
        << "the blocks arrived within the period";
    exchange_an_eighth();
    EXPECT_EQ(bucket_.depot.bytes(), magazine_bytes);
}

TEST_F(BucketDepotTest, ReturnsBlocksThatStayedForAWholePeriod) {
    for (unsigned i = 0; i < 4; ++i) bucket_.depot.give(*filled_magazine(10));
    bucket_.depot.drain_unneeded(PoolParts::path());
    EXPECT_EQ(bucket_.depot.bytes(), 40U << 10) << "the blocks arrived within the period";
    bucket_.depot.give(*bucket_.depot.take_full());  // all but one stayed in the depot
    bucket_.depot.drain_unneeded(PoolParts::path());
    EXPECT_EQ(bucket_.depot.bytes(), 10U << 10);
    bucket_.depot.give(*bucket_.depot.take_full());
    bucket_.depot.drain_unneeded(PoolParts::path());
    EXPECT_EQ(bucket_.depot.bytes(), 10U << 10) << "the magazine was taken within the period";
}

TEST_F(BucketDepotTest, PointerArraysOfASmallBucketAreLimitedTo256Kib) {
    std::vector<Magazine*> magazines;
    while (Magazine* const magazine = bucket_.depot.take_empty(MayMake::within_limit)) {
        ASSERT_LT(magazines.size(), 10'000U);
        magazines.push_back(magazine);
    }
    EXPECT_GE(magazines.size() * sizeof(Magazine), min_array_bytes);
    EXPECT_LT((magazines.size() - 1) * sizeof(Magazine), min_array_bytes);
    // A thread's own two magazines are not subject to the limit.
    EXPECT_NE(bucket_.depot.take_empty(MayMake::always), nullptr);
    // A magazine that was given back is taken again.
    bucket_.depot.give(*magazines.back());
    EXPECT_EQ(bucket_.depot.take_empty(MayMake::within_limit), magazines.back());
    EXPECT_EQ(bucket_.depot.take_empty(MayMake::within_limit), nullptr);
}

TEST_F(BucketDepotTest, PointerArraysOfALargeBucketAreLimitedToOne256thOfIt) {
    pool_.take(bucket_1k, 128 * 1024);
    const std::size_t capacity = pool_.capacity_of(bucket_1k);
    std::size_t magazines = 0;
    while (bucket_.depot.take_empty(MayMake::within_limit) != nullptr) ++magazines;
    EXPECT_GT(magazines * sizeof(Magazine), min_array_bytes);
    EXPECT_LE((magazines - 1) * sizeof(Magazine), capacity / 256);
}

TEST_F(BucketDepotTest, BlocksWithoutAMagazineReturnToTheirSpans) {
    LooseCache cache(pool_);
    constexpr std::size_t blocks = 200'000;
    std::vector<void*> all = pool_.allocate_direct(bucket_64, blocks);
    ASSERT_LT(pool_.capacity_of(bucket_64), std::size_t{64} << 20);
    PoolParts::deallocate(cache, bucket_64, all);
    EXPECT_LE(pool_.set.magazine_bytes(), min_array_bytes + 3 * sizeof(Magazine));
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    // Blocks that the depot could not hold have returned to their spans, and those to the heap.
    const std::size_t max_magazines = min_array_bytes / sizeof(Magazine) + 3;
    EXPECT_LE(pool_.parked_bytes(), 2 * magazine_room * 64U);
    EXPECT_LT(pool_.capacity_of(bucket_64), 2 * max_magazines * magazine_room * 64);
    cache.give_back_all(testing::PoolParts::path());
    pool_.drain();
    EXPECT_EQ(pool_.capacity_of(bucket_64), 0U);
}

TEST_F(BucketDepotTest, RepeatedTrimTakesNoMoreRecords) {
    std::size_t records = 0;
    for (unsigned cycle = 0; cycle < 1000; ++cycle) {
        std::vector<Magazine*> magazines;
        for (unsigned i = 0; i < 40; ++i) magazines.push_back(filled_magazine(4));
        for (Magazine* const magazine : magazines) bucket_.depot.give(*magazine);
        drain(BucketDepot::Magazines::destroy);
        if (cycle == 0) records = pool_.records.bytes_held();
        ASSERT_EQ(pool_.set.magazine_bytes(), 0U);
    }
    EXPECT_EQ(pool_.records.bytes_held(), records);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
}

TEST_F(BucketDepotTest, MakesNoMagazineWithoutMemoryAndRecovers) {
    use_up_records();
    {
        const ScarceMemory scarce;
        for (unsigned i = 0; i < 100; ++i) {
            ASSERT_EQ(bucket_.depot.take_empty(MayMake::always), nullptr);
        }
    }
    Magazine* const magazine = bucket_.depot.take_empty(MayMake::always);
    ASSERT_NE(magazine, nullptr);
    bucket_.depot.give(*magazine);
    EXPECT_EQ(bucket_.depot.take_empty(MayMake::within_limit), magazine);
}

TEST_F(BucketDepotTest, EveryMagazineHasRoomAfterAnyRefusedRecord) {
    // Records run out at any point: at the depot, at the room in its lists, at the magazine.
    for (int granted = 0; granted < 3; ++granted) {
        for (std::size_t bytes_left = 0; bytes_left < 400; bytes_left += 8) {
            PoolParts pool;
            std::vector<void*> records;
            while (pool.records.bytes_held() < (std::size_t{128} << 10))
                pool.records.allocate(8, 8);
            const std::size_t in_chunk = (std::size_t{64} << 10) - 16 - 8;
            for (std::size_t at = 0; at + bytes_left < in_chunk; at += 8)
                pool.records.allocate(8, 8);
            {
                const ScarceMemory scarce(granted);
                while (Magazine* const magazine =
                           pool.set[bucket_1k].depot.take_empty(MayMake::always)) {
                    pool.set[bucket_1k].depot.give(*magazine);
                    if (pool.set.magazine_bytes() > 100 * sizeof(Magazine)) break;
                    ASSERT_EQ(pool.set[bucket_1k].depot.take_empty(MayMake::always), magazine);
                }
            }
            std::vector<Magazine*> magazines;
            for (unsigned i = 0; i < 40; ++i) {
                magazines.push_back(pool.set[bucket_1k].depot.take_empty(MayMake::always));
                ASSERT_NE(magazines.back(), nullptr);
            }
            for (Magazine* const magazine : magazines) pool.set[bucket_1k].depot.give(*magazine);
        }
    }
}

TEST_F(BucketDepotTest, BlocksFreedWithoutMemoryForAMagazineReturnToTheirSpans) {
    LooseCache cache(pool_);
    const std::vector<void*> blocks = pool_.allocate_direct(bucket_1k, 100);
    use_up_records();
    const ScarceMemory scarce;
    PoolParts::deallocate(cache, bucket_1k, blocks);
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_EQ(pool_.parked_bytes(), 0U);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
    cache.give_back_all(testing::PoolParts::path());
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

TEST_F(BucketDepotTest, AllocationWithoutMemoryForAMagazineReportsTheReason) {
    LooseCache cache(pool_);
    pool_.bring_home(bucket_1k, pool_.take(bucket_1k, 1));
    use_up_records();
    PoolParts::path().refusal = {};
    {
        const ScarceMemory scarce;
        EXPECT_EQ(PoolParts::allocate(cache, bucket_1k), nullptr);
    }
    EXPECT_STREQ(PoolParts::path().refusal.limit, "memory for the pool's records");
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    EXPECT_NE(PoolParts::allocate(cache, bucket_1k), nullptr);
}

TEST_F(BucketDepotTest, ReturnsTheBytesOfSpansThatBecameFree) {
    const std::size_t bytes = bucket_.traits.layout.pages * pages::page_bytes;
    const std::vector<void*> blocks = pool_.take(bucket_1k, 10);
    EXPECT_EQ(bucket_.spans.bring_home(blocks.data(), 9, PoolParts::path()), 0U);
    EXPECT_EQ(bucket_.spans.bring_home(&blocks[9], 1, PoolParts::path()), bytes);

    bucket_.depot.give(*filled_magazine(10));
    EXPECT_EQ(pool_.set.drain_unneeded(PoolParts::path()), 0U);
    EXPECT_EQ(pool_.set.drain_unneeded(PoolParts::path()), bytes);
}

}  // namespace
}  // namespace tensorpool::blocks
