#include "pages/heap/page_heap.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "pages/heap/test_heap.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::pages {
namespace {

using testing::FakeSystem;
using testing::ForcedShards;

class HeapShardsTest : public ::testing::Test {
protected:
    HeapShardsTest() { FakeSystem::set(std::size_t{64} << 30, 0); }
    ~HeapShardsTest() override { common.loans.give_back_all(); }

    HeapShard& own(unsigned shard) {
        ForcedShards::keep_to(shard);
        return shards.own();
    }
    Span* take(HeapShard& shard) {
        SlowPath path;
        const std::lock_guard guard(common.growth);
        return shard.take({.pages = 4}, path);
    }
    unsigned count() {
        unsigned count = 0;
        shards.for_each([&](HeapShard&) { ++count; });
        return count;
    }

    const ForcedShards forced{4};
    statistics::PoolTotals totals{};
    limits::CommitBudget process{FakeSystem::source()};
    HeapCommon common{address_space(), process, 2103, testing::plain_options(), totals};
    HeapShards shards{common};
};

TEST_F(HeapShardsTest, EachIsMadeAtItsFirstUse) {
    EXPECT_EQ(count(), 1U);
    HeapShard& third = own(2);
    EXPECT_EQ(&own(2), &third);
    EXPECT_NE(&own(0), &third);
    EXPECT_EQ(count(), 2U);
    HeapShard* const marked = shards.marked();
    ASSERT_NE(marked, nullptr);
    EXPECT_EQ(shards.marked(), marked);
    EXPECT_TRUE(marked->is_marked());
    EXPECT_FALSE(third.is_marked());
    EXPECT_EQ(count(), 3U);
}

TEST_F(HeapShardsTest, SpanBelongsToTheShardThatBorrowedIt) {
    for (HeapShard* const shard : {&own(0), &own(3), shards.marked()}) {
        Span* const span = take(*shard);
        if (span == nullptr && shard->is_marked()) GTEST_SKIP() << "no low addresses";
        ASSERT_NE(span, nullptr);
        EXPECT_EQ(&shards.of(*span), shard);
    }
}

TEST_F(HeapShardsTest, RefusalAddsUpWhatIsFreeInAll) {
    for (HeapShard* const shard : {&own(0), &own(1)}) shard->free(*take(*shard), Zeroed::no);
    Refusal refusal;
    shards.report_free(refusal);
    EXPECT_TRUE(refusal.knows_free);
    EXPECT_EQ(refusal.free_pages, common.kept.free_bytes());
    EXPECT_GT(refusal.free_pages, refusal.largest_free);
}

}  // namespace
}  // namespace tensorpool::pages
