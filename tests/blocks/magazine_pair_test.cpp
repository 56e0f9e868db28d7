#include "blocks/magazine_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "blocks/bucket_traits.hpp"
#include "blocks/pool_parts.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

constexpr unsigned bucket_1k = 4;
constexpr unsigned capacity = 16;

struct Mark final : base::BlockMark {
    void on_free(std::size_t) noexcept override {}
    BlockMark* charge() noexcept override { return this; }
};

class LoadedBlocksTest : public ::testing::Test {
protected:
    void load(BucketSet& set, unsigned count) {
        Bucket& bucket = set[bucket_1k];
        loaded_.begin(bucket, view_, counted_);
        Magazine& magazine = *bucket.depot.take_empty(BucketDepot::MayMake::always);
        magazine.count = bucket.spans.take(magazine.blocks, count, PoolParts::path());
        ASSERT_EQ(magazine.count, count);
        blocks_.assign(magazine.blocks, magazine.blocks + count);
        loaded_.load(magazine, capacity);
    }
    void load_marked(unsigned count) { load(*thread_registry().marked_set(pool_.set), count); }

    std::ptrdiff_t seen() const { return view_.top - view_.bottom; }
    // Takes the last block, as inline paths do.
    void* pop() {
        EXPECT_GT(seen(), 0);
        return *--view_.top;
    }
    bool is_marked(const void* block) const {
        return mark_of(loaded_.bucket().traits, block).load() == &mark_;
    }
    std::ptrdiff_t marked() const {
        return std::count_if(blocks_.begin(), blocks_.end(),
                             [this](void* block) { return is_marked(block); });
    }

    PoolParts pool_;
    detail::LoadedMagazine view_;
    detail::BucketCounters counted_ = {};
    LoadedBlocks loaded_;
    std::vector<void*> blocks_;
    Mark mark_;
};

TEST_F(LoadedBlocksTest, ShowsBlocksAndRoomUpToTheCapacity) {
    load(pool_.set, 10);
    EXPECT_EQ(seen(), 10);
    EXPECT_EQ(view_.limit - view_.bottom, 16);
    EXPECT_TRUE(loaded_.has_room(capacity));
    for (void* const block : blocks_) EXPECT_TRUE(loaded_.holds(block));
    void* const last = pop();
    EXPECT_EQ(last, blocks_.back());
    EXPECT_FALSE(loaded_.holds(last));
    EXPECT_EQ(loaded_.unload().count, 9U);
    EXPECT_EQ(seen(), 0);
    EXPECT_EQ(loaded_.magazine(), nullptr);
}

TEST_F(LoadedBlocksTest, CloseHidesEverythingUntilOpen) {
    load(pool_.set, 10);
    loaded_.close();
    EXPECT_LT(view_.top, view_.bottom);
    EXPECT_LT(view_.limit, view_.top);
    loaded_.open(capacity);
    EXPECT_EQ(seen(), 10);
    EXPECT_EQ(view_.limit - view_.bottom, 16);
}

TEST_F(LoadedBlocksTest, TakeBackBringsHomeWhatWasThere) {
    load(pool_.set, 10);
    void* const held = pop();
    loaded_.close();
    EXPECT_EQ(loaded_.take_back(PoolParts::path()), 0U) << "nothing was exposed";
    EXPECT_EQ(counted_.returned, 9U);
    EXPECT_EQ(seen(), 0);
    loaded_.close_again();
    EXPECT_EQ(loaded_.take_back(PoolParts::path()), 0U);
    EXPECT_EQ(counted_.returned, 9U) << "no block twice";
    loaded_.open(capacity);
    EXPECT_EQ(seen(), 0);
    EXPECT_TRUE(loaded_.has_room(capacity));
    pool_.bring_home(bucket_1k, {held});
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

// A push that was in progress at `close` may still add a block.
TEST_F(LoadedBlocksTest, OpenMovesWhatWasPushedAfterTakeBackDown) {
    load(pool_.set, 10);
    void* const held = pop();
    loaded_.close();
    loaded_.take_back(PoolParts::path());
    *view_.top++ = held;
    loaded_.open(capacity);
    EXPECT_EQ(seen(), 1);
    EXPECT_EQ(view_.bottom.load(), loaded_.magazine()->blocks);
    EXPECT_EQ(pop(), held);
    pool_.bring_home(bucket_1k, {held});
}

TEST_F(LoadedBlocksTest, MarkedSetShowsOnlyWhatIsExposed) {
    load_marked(10);
    EXPECT_EQ(seen(), 0);
    EXPECT_EQ(loaded_.concealed(), 10U);
    std::size_t left = 10;
    for (const std::size_t expected : {1, 2, 4, 3}) {
        ASSERT_EQ(loaded_.to_expose(), expected);
        void** const first = loaded_.expose(expected, mark_);
        EXPECT_TRUE(is_marked(*first));
        ASSERT_EQ(seen(), static_cast<std::ptrdiff_t>(expected));
        EXPECT_EQ(loaded_.concealed(), left -= expected);
        for (std::size_t i = 0; i < expected; ++i) EXPECT_TRUE(is_marked(pop()));
    }
    EXPECT_EQ(loaded_.to_expose(), 0U);
}

TEST_F(LoadedBlocksTest, ConcealEndsTheMarksOfExposedBlocks) {
    load_marked(10);
    loaded_.expose(4, mark_);
    EXPECT_EQ(loaded_.to_expose(), 2U);
    void* const held = pop();
    EXPECT_EQ(loaded_.conceal(), 3 * 1024U);
    EXPECT_EQ(marked(), 1) << "the block in use";
    EXPECT_TRUE(is_marked(held));
    EXPECT_EQ(loaded_.concealed(), 9U);
    EXPECT_EQ(loaded_.to_expose(), 1U) << "from the beginning";
    EXPECT_EQ(loaded_.conceal(), 0U);
}

TEST_F(LoadedBlocksTest, FreedBlocksOfAMarkedSetAreAddedAboveOrBelowTheBottom) {
    load_marked(10);
    loaded_.expose(4, mark_);
    void* const held = pop();
    void* const other = pop();
    loaded_.push_exposed(held);
    EXPECT_EQ(seen(), 3);
    mark_of(loaded_.bucket().traits, other).store(nullptr);
    loaded_.push_concealed(other);
    EXPECT_EQ(seen(), 3);
    EXPECT_EQ(loaded_.concealed(), 7U);
    EXPECT_EQ(counted_.deallocations, 2U);
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_marked(pop()));
}

TEST_F(LoadedBlocksTest, TakeBackOfAMarkedSetEndsTheMarksOfExposedBlocks) {
    load_marked(10);
    loaded_.expose(4, mark_);
    void* const held = pop();
    loaded_.close();
    EXPECT_EQ(loaded_.take_back(PoolParts::path()), 3 * 1024U);
    EXPECT_EQ(counted_.returned, 9U);
    EXPECT_EQ(marked(), 1) << "the block in use";
    loaded_.open(capacity);
    EXPECT_EQ(loaded_.concealed(), 0U);
    mark_of(loaded_.bucket().traits, held).store(nullptr);
    loaded_.bucket().spans.bring_home(&held, 1, PoolParts::path());
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

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
    pair_.give_back(PoolParts::path());
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
