#include "blocks/bucket_shard.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <thread>
#include <vector>

#include "blocks/pool_parts.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::blocks {
namespace {

using MayMake = BucketDepot::MayMake;
using testing::ForcedShards;
using testing::PoolParts;

constexpr unsigned bucket_1k = 4;

class SpansWithRoomTest : public ::testing::Test {
protected:
    static constexpr unsigned blocks = 63;

    // Of the span's blocks, `out` are not home.
    pages::Span& place(unsigned number, unsigned out) {
        pages::Span& span = spans_[number];
        span.carved = blocks;
        span.home = static_cast<std::uint16_t>(blocks - out);
        with_room_.place(span);
        return span;
    }

    std::array<pages::Span, 10> spans_;
    SpansWithRoom with_room_{blocks};
};

TEST_F(SpansWithRoomTest, FullestServeFirst) {
    EXPECT_EQ(with_room_.fullest(), nullptr);
    pages::Span& half = place(0, 32);
    pages::Span& fuller = place(1, 60);
    pages::Span& emptier = place(2, 3);
    for (pages::Span* const expected : {&fuller, &half, &emptier}) {
        ASSERT_EQ(with_room_.fullest(), expected);
        with_room_.remove(*expected);
    }
    EXPECT_EQ(with_room_.fullest(), nullptr);
}

TEST_F(SpansWithRoomTest, SpanMovesWhenItsShareChanges) {
    pages::Span& one = place(0, 32);
    pages::Span& other = place(1, 20);
    place(1, 62);
    EXPECT_EQ(with_room_.fullest(), &other);
    place(1, 0);
    EXPECT_EQ(with_room_.fullest(), &one);
    with_room_.remove(one);
    EXPECT_EQ(with_room_.fullest(), &other);
}

TEST_F(SpansWithRoomTest, SpanOfAboutTheSameShareKeepsItsTurn) {
    place(0, 32);
    pages::Span& last = place(1, 33);
    place(0, 34);
    EXPECT_EQ(with_room_.fullest(), &last);
}

TEST_F(SpansWithRoomTest, EachShareHasAList) {
    for (unsigned out = 0; out < blocks; ++out) {
        pages::Span& span = place(0, out);
        EXPECT_EQ(span.fullness, out * SpansWithRoom::list_count / (blocks + 1)) << out;
        EXPECT_EQ(&with_room_.lists()[span.fullness].front(), &span);
        EXPECT_EQ(with_room_.fullest(), &span);
    }
}

TEST_F(SpansWithRoomTest, RemovingASpanThatIsNotListedDoesNothing) {
    pages::Span& span = place(0, 1);
    with_room_.remove(span);
    with_room_.remove(span);
    EXPECT_EQ(with_room_.fullest(), nullptr);
}

/// A pool with four shards. The calls of a test take the shard that it chooses.
class BucketShards : public ::testing::Test {
protected:
    ~BucketShards() override {
        pool_.drain();
        ForcedShards::keep_to(ForcedShards::changing);
    }
    std::vector<void*> take(unsigned shard, unsigned count) {
        ForcedShards::keep_to(shard);
        return pool_.take(bucket_1k, count);
    }
    static const pages::Span* span_of(const void* block) {
        return pages::address_space().map().at(block).span();
    }
    Magazine* full_magazine(unsigned shard) {
        Magazine* const magazine = bucket_.depot.take_empty(MayMake::always);
        const std::vector<void*> blocks = take(shard, 10);
        std::copy(blocks.begin(), blocks.end(), magazine->blocks);
        magazine->count = 10;
        return magazine;
    }

    const ForcedShards forced_{4};
    PoolParts pool_;
    Bucket& bucket_ = pool_.set[bucket_1k];
};

TEST_F(BucketShards, EachCutsSpansOfItsOwn) {
    const std::vector<void*> one = take(0, 5);
    const std::vector<void*> other = take(1, 5);
    EXPECT_EQ(span_of(one[0])->shard, 0U);
    EXPECT_EQ(span_of(other[0])->shard, 1U);
    EXPECT_NE(span_of(one[0]), span_of(other[0]));
    pool_.bring_home(bucket_1k, one);
    pool_.bring_home(bucket_1k, other);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
}

TEST_F(BucketShards, BlocksGoHomeToTheShardOfTheirSpan) {
    std::vector<void*> mixed = take(0, 5);
    for (const unsigned shard : {1U, 0U, 2U}) {
        const std::vector<void*> more = take(shard, 5);
        mixed.insert(mixed.end(), more.begin(), more.end());
    }
    ForcedShards::keep_to(3);
    pool_.bring_home(bucket_1k, mixed);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U) << "every span was free and went to the page heap";
}

TEST_F(BucketShards, SpansOfOthersServeBeforeGrowth) {
    const std::vector<void*> held = take(0, 5);
    const std::size_t capacity = pool_.heap.capacity().bytes();
    // The rest of what the first shard committed.
    ForcedShards::keep_to(1);
    const std::vector<void*> rest = pool_.take(bucket_1k, static_cast<unsigned>(capacity / 1024));
    EXPECT_EQ(pool_.heap.capacity().bytes(), capacity);
    EXPECT_GT(rest.size(), 0U);
    pool_.bring_home(bucket_1k, rest);
    pool_.bring_home(bucket_1k, held);
}

TEST_F(BucketShards, MagazinesOfOthersServeIfTheOwnListIsEmpty) {
    Magazine* const magazine = full_magazine(0);
    bucket_.depot.give(*magazine);
    ForcedShards::keep_to(2);
    EXPECT_EQ(bucket_.depot.take_full(), magazine);
    ForcedShards::keep_to(0);
    EXPECT_EQ(bucket_.depot.take_full(), nullptr);
    bucket_.depot.give(*magazine);
}

TEST_F(BucketShards, OwnMagazinesServeFirst) {
    Magazine* const first = full_magazine(0);
    Magazine* const second = full_magazine(1);
    ForcedShards::keep_to(0);
    bucket_.depot.give(*first);
    ForcedShards::keep_to(1);
    bucket_.depot.give(*second);
    ForcedShards::keep_to(0);
    EXPECT_EQ(bucket_.depot.take_full(), first);
    bucket_.depot.give(*first);
    EXPECT_EQ(bucket_.depot.bytes(), 20U << 10);
}

TEST_F(BucketShards, EmptyMagazineGoesToAnotherShardIfTheOwnHasNoNode) {
    std::vector<Magazine*> magazines;
    ForcedShards::keep_to(0);
    for (int i = 0; i < 8; ++i) magazines.push_back(bucket_.depot.take_empty(MayMake::always));
    ForcedShards::keep_to(3);
    for (Magazine* const magazine : magazines) {
        magazine->count = 0;
        bucket_.depot.give(*magazine);
    }
    for (int i = 0; i < 8; ++i) {
        Magazine* const magazine = bucket_.depot.take_empty(MayMake::within_limit);
        EXPECT_NE(std::find(magazines.begin(), magazines.end(), magazine), magazines.end());
        magazines.push_back(magazine);
    }
    for (std::size_t i = 8; i < 16; ++i) {
        magazines[i]->count = 0;
        bucket_.depot.give(*magazines[i]);
    }
}

TEST_F(BucketShards, EndOfAPeriodReturnsTheBlocksOfAll) {
    for (const unsigned shard : {0U, 1U, 2U}) {
        Magazine* const magazine = full_magazine(shard);
        bucket_.depot.give(*magazine);
    }
    bucket_.depot.drain_unneeded(PoolParts::path());
    bucket_.depot.drain_unneeded(PoolParts::path());
    EXPECT_EQ(bucket_.depot.bytes(), 0U);
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
}

TEST_F(BucketShards, FindKnowsTheBlocksOfAll) {
    const std::vector<void*> blocks = take(2, 3);
    ForcedShards::keep_to(1);
    const BucketSpans::Finding finding = bucket_.spans.find(static_cast<char*>(blocks[1]) + 7);
    EXPECT_TRUE(finding.in_span);
    EXPECT_EQ(finding.block, blocks[1]);
    EXPECT_FALSE(finding.home);
    pool_.bring_home(bucket_1k, blocks);
}

// The magazines of the threads and the depots exchange blocks of all shards.
TEST_F(BucketShards, ThreadsThatMoveBetweenShardsLoseNothing) {
    {
        std::vector<std::thread> threads;
        for (int index = 0; index < 4; ++index) {
            threads.emplace_back([this] {
                std::vector<void*> blocks(2000);
                for (int round = 0; round < 20; ++round) {
                    for (void*& block : blocks) block = pool_.allocate(bucket_1k);
                    for (void* const block : blocks) pool_.deallocate(bucket_1k, block);
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
    }
    EXPECT_EQ(pool_.in_use_bytes(), 0U);
    pool_.drain();
    EXPECT_EQ(pool_.capacity_of(bucket_1k), 0U);
    EXPECT_EQ(pool_.held_bytes(), 0U);
}

}  // namespace
}  // namespace tensorpool::blocks
