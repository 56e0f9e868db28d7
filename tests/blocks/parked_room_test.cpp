#include "blocks/cache.hpp"

#include <gtest/gtest.h>

#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;
constexpr unsigned bucket_64k = 10;

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

}  // namespace
}  // namespace tensorpool::blocks
