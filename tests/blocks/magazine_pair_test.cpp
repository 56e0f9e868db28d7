#include "blocks/magazine_pair.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

class MagazinePairTest : public ::testing::Test {
protected:
    MagazinePairTest() {
        pair_.begin(bucket_, view_, counted_);
        pair_.may_park = true;
    }
    Magazine& full(unsigned count) {
        Magazine& magazine = *bucket_.depot.take_empty(BucketDepot::MayMake::always);
        magazine.count = bucket_.spans.take(magazine.blocks, count, PoolParts::path());
        return magazine;
    }
    std::ptrdiff_t seen() const { return view_.top - view_.bottom; }
    void empty_loaded() { view_.top = view_.bottom; }

    PoolParts pool_;
    Bucket& bucket_ = pool_.set[bucket_1k];
    detail::LoadedMagazine view_;
    detail::BucketCounters counted_ = {};
    MagazinePair pair_;
};

TEST_F(MagazinePairTest, BeginsWithTheFirstCapacity) {
    EXPECT_EQ(pair_.capacity, bucket_.traits.layout.first_refill);
    EXPECT_EQ(pair_.room_bytes(), 2 * pair_.capacity * 1024U);
    EXPECT_FALSE(pair_.load_full_spare());
    EXPECT_FALSE(pair_.load_empty_spare());
}

TEST_F(MagazinePairTest, LoadedMagazineBecomesTheSpareAndTheSpareGoesToTheDepot) {
    Magazine& first = full(3);
    pair_.load(first);
    pair_.load(full(5));
    EXPECT_EQ(seen(), 5);
    for (unsigned i = 0; i < 3; ++i) EXPECT_TRUE(pair_.parks(first.blocks[i]));
    EXPECT_EQ(counted_.returned, 0U);
    pair_.load(full(7));
    EXPECT_EQ(counted_.returned, 3U);
    EXPECT_EQ(bucket_.depot.bytes(), 3 * 1024U);
    EXPECT_FALSE(pair_.parks(first.blocks[0]));
}

TEST_F(MagazinePairTest, SwapsWithASpareThatHasBlocksOrNone) {
    pair_.load(full(3));
    pair_.load(full(5));
    EXPECT_FALSE(pair_.load_empty_spare());
    empty_loaded();
    EXPECT_TRUE(pair_.load_full_spare());
    EXPECT_EQ(seen(), 3);
    EXPECT_FALSE(pair_.load_full_spare()) << "the spare is empty";
    EXPECT_TRUE(pair_.load_empty_spare());
    EXPECT_EQ(seen(), 0);
}

TEST_F(MagazinePairTest, SpareGoesToTheDepotOrHomeForAnEmptyMagazine) {
    ASSERT_TRUE(pair_.load_empty(PoolParts::path()));
    pair_.load(full(pair_.capacity));
    pair_.load(full(pair_.capacity));
    ASSERT_TRUE(pair_.load_empty(PoolParts::path()));
    EXPECT_EQ(seen(), 0);
    EXPECT_TRUE(pair_.loaded.has_room(pair_.capacity));
    EXPECT_EQ(counted_.returned, pair_.capacity);
}

TEST_F(MagazinePairTest, GivesBothBack) {
    pair_.load(full(3));
    pair_.load(full(5));
    pair_.give_back();
    EXPECT_EQ(bucket_.depot.bytes(), 8 * 1024U);
    EXPECT_EQ(counted_.returned, 8U);
    EXPECT_EQ(pair_.loaded.magazine(), nullptr);
    EXPECT_NE(pair_.loaded_or_empty(), nullptr);
    EXPECT_EQ(seen(), 0);
}

TEST_F(MagazinePairTest, TakeBackBringsTheBlocksOfBothHome) {
    pair_.load(full(3));
    pair_.load(full(5));
    pair_.loaded.close();
    EXPECT_EQ(pair_.take_back(PoolParts::path()), 0U);
    EXPECT_EQ(counted_.returned, 8U);
    EXPECT_EQ(bucket_.depot.bytes(), 0U);
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

TEST_F(MagazinePairTest, WasIdleAfterAPassWithoutCalls) {
    EXPECT_TRUE(pair_.was_idle());
    counted_.allocations = 1;
    EXPECT_FALSE(pair_.was_idle());
    EXPECT_TRUE(pair_.was_idle());
    counted_.deallocations = 1;
    EXPECT_FALSE(pair_.was_idle());
}

}  // namespace
}  // namespace tensorpool::blocks
