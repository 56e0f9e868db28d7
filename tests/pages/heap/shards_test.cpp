#include "pages/heap/shards.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "pages/heap/test_heap.hpp"
#include "pages/random.hpp"
#include "support/forced_shards.hpp"

namespace tensorpool::pages {
namespace {

using testing::ForcedShards;
using testing::limited_options;
using testing::TestHeap;

TEST(Shards, ThereIsOneForEach16Processors) {
    EXPECT_EQ(shards_for(0), 1U) << "the number of processors is unknown";
    EXPECT_EQ(shards_for(1), 1U);
    EXPECT_EQ(shards_for(16), 1U);
    EXPECT_EQ(shards_for(17), 2U);
    EXPECT_EQ(shards_for(64), 4U);
    EXPECT_EQ(shards_for(4096), max_shards);
}

// Read while the program is loaded, before its first call.
const unsigned count_at_the_start = sharding.count;

TEST(Shards, NumberIsDeterminedAtTheFirstUse) {
    EXPECT_EQ(count_at_the_start, 0U);
    EXPECT_LT(determine_shard(), max_shards);
    EXPECT_NE(sharding.count, 0U);
}

TEST(Shards, ThreadsHaveOneByTheirProcessor) {
    EXPECT_LT(current_shard(), max_shards);
    if (std::thread::hardware_concurrency() <= processors_per_shard) {
        EXPECT_EQ(current_shard(), 0U);
        EXPECT_EQ(sharding.count, 1U);
    }
}

TEST(Shards, EachIsMadeAtItsFirstUse) {
    const ForcedShards forced(4);
    PerShard<unsigned> numbers(0U);
    unsigned second = 0;
    unsigned made = 0;
    const auto own = [&](unsigned shard) -> unsigned& {
        ForcedShards::keep_to(shard);
        return numbers.own(
            [&](unsigned number) noexcept {
                ++made;
                second = number;
                return &second;
            },
            [](unsigned&) noexcept {});
    };
    EXPECT_EQ(&own(0), &numbers.first());
    EXPECT_FALSE(numbers.has_others());
    EXPECT_EQ(&own(2), &second);
    EXPECT_EQ(&own(2), &second);
    EXPECT_EQ(second, 2U);
    EXPECT_EQ(made, 1U);
    EXPECT_TRUE(numbers.has_others());
    EXPECT_EQ(numbers.find(1), nullptr);
    unsigned sum = 0;
    numbers.for_each([&](unsigned number) { sum += 10 + number; });
    EXPECT_EQ(sum, 22U);
    ForcedShards::keep_to(ForcedShards::changing);
}

TEST(Shards, TheFirstServesIfThereIsNoMemoryForAnother) {
    const ForcedShards forced(4);
    ForcedShards::keep_to(3);
    PerShard<unsigned> numbers(0U);
    const auto none = [](unsigned) noexcept -> unsigned* { return nullptr; };
    EXPECT_EQ(&numbers.own(none, [](unsigned&) noexcept {}), &numbers.first());
    EXPECT_FALSE(numbers.has_others());
    ForcedShards::keep_to(ForcedShards::changing);
}

/// A heap with four shards. The calls of a test take the shard that it chooses.
class PageHeapShards : public ::testing::Test {
protected:
    ~PageHeapShards() override { ForcedShards::keep_to(ForcedShards::changing); }
    Span* allocate(unsigned shard, PageCount pages, TestHeap& heap) {
        ForcedShards::keep_to(shard);
        return heap.allocate(pages);
    }

    const ForcedShards forced_{4};
};

TEST_F(PageHeapShards, EachBorrowsGranulesOfItsOwn) {
    TestHeap heap;
    const Span* const one = allocate(0, 10, heap);
    const Span* const other = allocate(1, 10, heap);
    EXPECT_NE(one->first_page / granule_pages, other->first_page / granule_pages);
    EXPECT_EQ(address_space().shard_of(one->first_page), 0U);
    EXPECT_EQ(address_space().shard_of(other->first_page), 1U);
    EXPECT_EQ(heap.capacity(), 20U);
}

TEST_F(PageHeapShards, FreeMemoryOfAnotherServesBeforeGrowth) {
    TestHeap heap;
    Span* const span = allocate(0, 100, heap);
    const PageNumber first = span->first_page;
    heap.free(span);
    EXPECT_EQ(allocate(3, 60, heap)->first_page, first);
    EXPECT_EQ(allocate(2, 40, heap)->first_page, first + 60);
    EXPECT_EQ(heap.capacity(), 100U);
    EXPECT_EQ(heap.free_pages(), 0U);
}

TEST_F(PageHeapShards, SpanGoesBackToTheShardThatBorrowedIt) {
    TestHeap heap;
    Span* const one = allocate(0, 30, heap);
    Span* const next = allocate(0, 30, heap);
    ForcedShards::keep_to(1);
    heap.free(one);
    ForcedShards::keep_to(2);
    heap.free(next);
    EXPECT_EQ(allocate(0, 60, heap)->pages, 60U) << "the two have joined";
    EXPECT_EQ(heap.capacity(), 60U);
}

TEST_F(PageHeapShards, FreeMemoryOfAllMakesRoomUnderALimit) {
    TestHeap heap(limited_options(300));
    std::vector<Span*> spans;
    for (unsigned shard = 0; shard < 3; ++shard) spans.push_back(allocate(shard, 100, heap));
    for (Span* const span : spans) heap.free(span);
    EXPECT_EQ(heap.free_pages(), 300U);
    ASSERT_NE(allocate(3, 250, heap), nullptr) << "no shard has 250 adjacent pages";
    EXPECT_LE(heap.capacity(), 300U);
    EXPECT_EQ(allocate(0, 51, heap), nullptr);
    EXPECT_STREQ(heap.path.refusal.limit, "max_capacity");
    EXPECT_EQ(heap.path.refusal.needed_limit, 301 * page_bytes);
}

TEST_F(PageHeapShards, RefusalAddsUpWhatIsFreeInAll) {
    TestHeap heap(limited_options(300));
    Span* const first = allocate(0, 100, heap);
    Span* const second = allocate(1, 100, heap);
    allocate(2, 100, heap);
    heap.free(first);
    heap.free(second);
    heap.path.refusal = {};
    heap.reserve(300);
    EXPECT_EQ(allocate(3, 400, heap), nullptr);
    EXPECT_TRUE(heap.path.refusal.knows_free);
    EXPECT_EQ(heap.path.refusal.free_pages, 0U) << "all of it was given back to make room";
}

TEST_F(PageHeapShards, ShardIsNotMadeWhileAllLocksAreHeld) {
    TestHeap heap;
    allocate(0, 1, heap);
    heap.heap.lock();
    std::thread other([&] {
        ForcedShards::keep_to(1);
        SlowPath path;
        heap.heap.allocate({.pages = 1}, path);
    });
    heap.heap.unlock();
    other.join();
    EXPECT_EQ(heap.capacity(), 2U);
    heap.heap.lock();
    heap.heap.unlock();
}

TEST_F(PageHeapShards, RecordsOfEachCount) {
    TestHeap heap;
    allocate(0, 1, heap);
    const std::uint64_t before = heap.totals.record_bytes;
    allocate(1, 1, heap);
    EXPECT_GE(heap.totals.record_bytes, before + sizeof(HeapShard));
}

TEST_F(PageHeapShards, TrimGivesBackTheFreeMemoryOfAll) {
    TestHeap heap;
    std::vector<Span*> spans;
    for (unsigned shard = 0; shard < 4; ++shard) spans.push_back(allocate(shard, 100, heap));
    for (Span* const span : spans) heap.free(span);
    EXPECT_EQ(heap.trim(), 400U);
    EXPECT_EQ(heap.capacity(), 0U);
    EXPECT_EQ(heap.totals.reserved_bytes, 0U);
}

TEST_F(PageHeapShards, PeriodGivesBackWhatNoShardNeeded) {
    TestHeap heap;
    std::vector<Span*> spans;
    for (unsigned shard = 0; shard < 4; ++shard) spans.push_back(allocate(shard, 100, heap));
    for (Span* const span : spans) heap.free(span);
    ASSERT_TRUE(heap.end_period());
    Span* const used = allocate(1, 50, heap);
    heap.free(used);
    ASSERT_TRUE(heap.end_period());
    EXPECT_EQ(heap.capacity(), 50U);
}

TEST_F(PageHeapShards, ReservedMemoryServesAllShards) {
    TestHeap heap;
    ForcedShards::keep_to(2);
    ASSERT_TRUE(heap.reserve(400));
    heap.give_back(400);
    EXPECT_EQ(heap.capacity(), 400U) << "retention keeps what was reserved";
    for (unsigned shard = 0; shard < 4; ++shard) allocate(shard, 100, heap);
    EXPECT_EQ(heap.capacity(), 400U);
}

TEST_F(PageHeapShards, SpanGrowsInItsOwnShard) {
    TestHeap heap;
    Span* const span = allocate(0, 20, heap);
    ForcedShards::keep_to(1);
    EXPECT_TRUE(heap.heap.extend(*span, 40, heap.path));
    EXPECT_EQ(span->pages, 40U);
    EXPECT_EQ(heap.capacity(), 40U);
    heap.free(span);
    EXPECT_EQ(allocate(0, 40, heap), span);
}

TEST_F(PageHeapShards, ThreadsOfAllShardsAllocateAndFreeAtOnce) {
    TestHeap heap(limited_options(20'000));
    std::vector<std::thread> threads;
    for (unsigned index = 0; index < 4; ++index) {
        threads.emplace_back([&heap, index] {
            testing::Random random(index + 1);
            SlowPath path;
            std::vector<Span*> spans;
            for (int step = 0; step < 3000; ++step) {
                if (spans.size() < 8) {
                    const PageRequest request{.pages = random.log_uniform(1, 300)};
                    if (Span* const span = heap.heap.allocate(request, path)) {
                        *heap.address_of(*span) = static_cast<unsigned char>(index);
                        spans.push_back(span);
                    }
                } else {
                    std::swap(spans[random.below(spans.size())], spans.back());
                    ASSERT_EQ(*heap.address_of(*spans.back()), index);
                    heap.heap.free(*spans.back(), path);
                    spans.pop_back();
                }
                if (step % 500 == 0) heap.heap.trim(path);
            }
            for (Span* const span : spans) heap.heap.free(*span, path);
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(heap.free_pages(), heap.capacity());
    EXPECT_EQ(heap.committed(), heap.capacity());
    heap.trim();
    EXPECT_EQ(heap.capacity(), 0U);
}

}  // namespace
}  // namespace tensorpool::pages
