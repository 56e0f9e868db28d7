#include <gtest/gtest.h>

#include <cstring>

#include "pages/failing_system.hpp"
#include "pages/heap/test_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::limited_options;
using testing::plain_options;
using testing::TestHeap;

std::uint64_t entry_at(PageNumber page) {
    return address_space().map().at(page).word();
}

TEST(PageHeapMoving, SpanGrowsIntoTheFreePagesBehindIt) {
    TestHeap heap;
    const auto spans = heap.allocate_all({32, 64, 16});
    heap.free(spans[1]);
    ASSERT_TRUE(heap.heap.extend(*spans[0], 72, heap.path));
    EXPECT_EQ(spans[0]->pages, 72U);
    EXPECT_EQ(heap.capacity(), 112U);
    EXPECT_EQ(heap.free_pages(), 24U);
    EXPECT_NE(heap.allocate(24), nullptr);
    EXPECT_EQ(heap.capacity(), 112U) << "nothing was committed";
}

TEST(PageHeapMoving, SpanGrowsIntoTheWholeExtentBehindIt) {
    TestHeap heap;
    const auto spans = heap.allocate_all({32, 64, 16});
    heap.free(spans[1]);
    ASSERT_TRUE(heap.heap.extend(*spans[0], 96, heap.path));
    EXPECT_EQ(heap.free_pages(), 0U);
    EXPECT_FALSE(heap.heap.extend(*spans[0], 97, heap.path)) << "the next one is in use";
    EXPECT_EQ(spans[0]->pages, 96U);
}

TEST(PageHeapMoving, SpanAtTheEndOfCapacityCommitsTheShortfall) {
    TestHeap heap;
    const auto spans = heap.allocate_all({32, 16});
    heap.free(spans[1]);
    ASSERT_TRUE(heap.heap.extend(*spans[0], 100, heap.path));
    EXPECT_EQ(heap.capacity(), 100U);
    EXPECT_EQ(heap.committed(), 100U);
    std::memset(heap.address_of(*spans[0]), 1, spans[0]->bytes());
}

TEST(PageHeapMoving, EntryOfTheOldLastPageIsCleared) {
    TestHeap heap;
    Span* const span = heap.allocate(32);
    const PageNumber old_last = span->end_page() - 1;
    ASSERT_TRUE(heap.heap.extend(*span, 64, heap.path));
    EXPECT_EQ(entry_at(old_last), 0U);
    EXPECT_NE(entry_at(span->end_page() - 1), 0U);
    Span* const one = heap.allocate(1);
    ASSERT_TRUE(heap.heap.extend(*one, 3, heap.path));
    EXPECT_NE(entry_at(one->first_page), 0U) << "the first page is also the last";
}

TEST(PageHeapMoving, GrowthBeyondTheLimitFailsAndChangesNothing) {
    TestHeap heap(limited_options(64));
    Span* const span = heap.allocate(32);
    EXPECT_FALSE(heap.heap.extend(*span, 65, heap.path));
    EXPECT_EQ(heap.heap.move(*span, 65, heap.path), nullptr);
    EXPECT_EQ(span->pages, 32U);
    EXPECT_EQ(heap.capacity(), 32U);
    EXPECT_TRUE(heap.heap.extend(*span, 64, heap.path));
}

class PageHeapMove : public ::testing::Test {
protected:
    void SetUp() override {
        if (!platform::can_move_memory()) GTEST_SKIP() << "this system cannot move memory";
    }
    static void fill(const TestHeap& heap, const Span& span, unsigned char value) {
        std::memset(heap.address_of(span), value, span.bytes());
    }
    static bool is_filled(const TestHeap& heap, const Span& span, std::size_t pages,
                          unsigned char value) {
        const unsigned char* const begin = heap.address_of(span);
        for (std::size_t at = 0; at != pages * page_bytes; ++at) {
            if (begin[at] != value) return false;
        }
        return true;
    }
};

TEST_F(PageHeapMove, KeepsTheContentAndCommitsTheDifference) {
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16});
    fill(heap, *spans[0], 7);
    const PageNumber old = spans[0]->first_page;
    Span* const left = heap.heap.move(*spans[0], 640, heap.path);
    ASSERT_NE(left, nullptr);
    heap.heap.take_left(*left);
    EXPECT_NE(spans[0]->first_page, old);
    EXPECT_EQ(spans[0]->first_page % granule_pages, old % granule_pages);
    EXPECT_TRUE(is_filled(heap, *spans[0], 320, 7));
    EXPECT_EQ(heap.capacity(), 656U);
    EXPECT_EQ(heap.committed(), 656U);
    EXPECT_EQ(address_space().map().at(old).kind(), PageKind::extent_cold);
    fill(heap, *spans[0], 8);
    EXPECT_EQ(spans[1]->pages, 16U);
}

TEST_F(PageHeapMove, LeftPagesReadAsZerosOnReuse) {
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16});
    fill(heap, *spans[0], 7);
    const PageNumber old = spans[0]->first_page;
    Span* const left = heap.heap.move(*spans[0], 640, heap.path);
    ASSERT_NE(left, nullptr);
    heap.heap.take_left(*left);
    Span* const next = heap.allocate(320);
    EXPECT_EQ(next->first_page, old);
    EXPECT_TRUE(next->clean);
    EXPECT_TRUE(is_filled(heap, *next, 320, 0));
    fill(heap, *next, 9);
}

TEST_F(PageHeapMove, BlockThatGrowsBetweenMovesMovesInPieces) {
    TestHeap heap;
    Span* span = heap.allocate(256);
    Span* behind = heap.allocate(1);
    for (unsigned round = 0; round != 10; ++round) {
        fill(heap, *span, static_cast<unsigned char>(round + 1));
        const PageCount before = span->pages;
        Span* const left = heap.heap.move(*span, before + 64, heap.path);
        ASSERT_NE(left, nullptr) << round;
        heap.heap.take_left(*left);
        ASSERT_TRUE(is_filled(heap, *span, before, static_cast<unsigned char>(round + 1))) << round;
        ASSERT_TRUE(heap.heap.extend(*span, span->pages + 16, heap.path));
    }
    heap.free(span);
    heap.free(behind);
    heap.trim();
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST_F(PageHeapMove, RefusedMoveChangesNothing) {
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16});
    fill(heap, *spans[0], 7);
    ASSERT_TRUE(address_space().memory().may_move({spans[0]->first_page, 320}));
    const PageNumber old = spans[0]->first_page;
    const testing::Failing failing(testing::SystemCall::move_pages);
    EXPECT_EQ(heap.heap.move(*spans[0], 640, heap.path), nullptr);
    EXPECT_EQ(spans[0]->first_page, old);
    EXPECT_EQ(heap.capacity(), 336U);
    EXPECT_EQ(heap.committed(), 336U);
    EXPECT_TRUE(is_filled(heap, *spans[0], 320, 7));
    Span* const other = heap.allocate(640);
    fill(heap, *other, 8);
}

TEST_F(PageHeapMove, MoveRefusedBetweenMappingsChangesNothing) {
    TestHeap heap;
    const auto spans = heap.allocate_all({640, 16});
    fill(heap, *spans[0], 7);
    ASSERT_TRUE(address_space().memory().may_move({spans[0]->first_page, 640}));
    const testing::Failing failing(testing::SystemCall::move_second_half);
    EXPECT_EQ(heap.heap.move(*spans[0], 1000, heap.path), nullptr);
    EXPECT_GE(testing::Failing::seen(), 1U);
    EXPECT_EQ(heap.capacity(), 656U);
    EXPECT_TRUE(is_filled(heap, *spans[0], 640, 7));
    fill(heap, *spans[0], 8);
    Span* const other = heap.allocate(1000);
    EXPECT_TRUE(other->clean);
    EXPECT_TRUE(is_filled(heap, *other, 1000, 0));
}

TEST_F(PageHeapMove, MoveRefusedInTheMiddleIsFinishedByCopying) {
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16});
    fill(heap, *spans[0], 7);
    Span* left = heap.heap.move(*spans[0], 640, heap.path);
    ASSERT_NE(left, nullptr);
    heap.heap.take_left(*left);
    fill(heap, *spans[0], 9);
    heap.allocate_all({16});
    const testing::Failing failing(testing::SystemCall::move_pages, 1);
    left = heap.heap.move(*spans[0], 1000, heap.path);
    ASSERT_NE(left, nullptr) << "the piece that was moved before is moved again";
    heap.heap.take_left(*left);
    EXPECT_TRUE(is_filled(heap, *spans[0], 640, 9));
    EXPECT_EQ(heap.capacity(), heap.committed());
    fill(heap, *spans[0], 10);
}

TEST_F(PageHeapMove, IsNotDoneWithANumaPolicy) {
    HeapOptions options = plain_options();
    options.numa.placement = NumaPolicy::Placement::interleave;
    TestHeap heap(options);
    const auto spans = heap.allocate_all({320, 16});
    EXPECT_EQ(heap.heap.move(*spans[0], 640, heap.path), nullptr);
}

// Each part that is given back cuts the moved run in two.
TEST_F(PageHeapMove, MovedBlockCanBeReturnedInManyPieces) {
    TestHeap heap;
    const auto spans = heap.allocate_all({16'000, 16});
    Span* const left = heap.heap.move(*spans[0], 32'000, heap.path);
    ASSERT_NE(left, nullptr);
    heap.heap.take_left(*left);
    heap.free(spans[0]);
    std::vector<Span*> small;
    for (unsigned i = 0; i != 1500; ++i) small.push_back(heap.allocate(20));
    for (unsigned i = 0; i < 1500; i += 2) heap.free(small[i]);
    heap.trim();
    for (unsigned i = 1; i < 1500; i += 2) fill(heap, *small[i], 3);
    EXPECT_NE(heap.allocate(20), nullptr);
}

TEST_F(PageHeapMove, IsNotDoneIfFreeMemoryCouldHoldTheBlock) {
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16, 640, 16});
    heap.free(spans[2]);
    EXPECT_EQ(heap.heap.move(*spans[0], 640, heap.path), nullptr);
    EXPECT_NE(heap.allocate(640), nullptr);
}

// The number of mappings of a process is limited.
TEST_F(PageHeapMove, IsNotDoneAfterTooManyMovesUntilRunsAreReturned) {
    TestHeap heap;
    std::vector<Span*> moved;
    for (unsigned count = 0; count <= MovedRuns::max_runs; ++count) {
        Span* const span = heap.allocate(32);
        heap.allocate(1);
        Span* const left = heap.heap.move(*span, 48, heap.path);
        if (left == nullptr) break;
        heap.heap.take_left(*left);
        moved.push_back(span);
    }
    EXPECT_GE(moved.size(), MovedRuns::max_runs - 4);
    EXPECT_LE(moved.size(), MovedRuns::max_runs);
    for (Span* const span : moved) heap.free(span);
    heap.trim();
    Span* const span = heap.allocate(32);
    heap.allocate(1);
    Span* const left = heap.heap.move(*span, 48, heap.path);
    ASSERT_NE(left, nullptr) << "returned runs are no longer counted";
    heap.heap.take_left(*left);
}

}  // namespace
}  // namespace tensorpool::pages
