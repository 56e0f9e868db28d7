#include <gtest/gtest.h>

#include <cstring>

#include "pages/failing_system.hpp"
#include "pages/heap/test_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::before_populating;
using testing::FakeSystem;
using testing::limited_options;
using testing::TestHeap;

std::size_t reserved(const TestHeap& heap) {
    return heap.totals.reserved_bytes.load() / page_bytes;
}

TEST(PageHeapLending, TrimReturnsAddressesOfColdGranules) {
    TestHeap heap;
    Span* const kept = heap.allocate(16);
    std::memset(heap.address_of(*kept), 3, kept->bytes());
    heap.free(heap.allocate(4 * granule_pages));
    const std::size_t before = reserved(heap);
    EXPECT_GT(before, 4 * granule_pages);
    heap.trim();
    EXPECT_EQ(reserved(heap), granule_pages) << "only the granule of the remaining span";
    EXPECT_EQ(heap.totals.peak_reserved_bytes.load() / page_bytes, before);
    EXPECT_FALSE(address_space().is_lent(heap.address_of(*kept) + granule_pages * page_bytes));
    EXPECT_EQ(heap.address_of(*kept)[0], 3);
    Span* const again = heap.allocate(4 * granule_pages);
    ASSERT_NE(again, nullptr);
    std::memset(heap.address_of(*again), 4, again->bytes());
}

TEST(PageHeapLending, UnusedHeapHoldsNoAddressesAfterTrim) {
    TestHeap heap;
    heap.free(heap.allocate(3 * granule_pages));
    heap.free(heap.allocate(5));
    heap.trim();
    EXPECT_EQ(reserved(heap), 0U);
    EXPECT_NE(heap.allocate(1), nullptr);
}

TEST(PageHeapLending, RequestsBeyondTheLimitBorrowNothing) {
    TestHeap heap(limited_options(64));
    ASSERT_NE(heap.allocate(32), nullptr);
    const std::size_t before = reserved(heap);
    EXPECT_EQ(heap.allocate(100 * granule_pages), nullptr);
    EXPECT_FALSE(heap.reserve(100 * granule_pages));
    EXPECT_EQ(reserved(heap), before);
    EXPECT_NE(heap.allocate(32), nullptr);
}

TEST(PageHeapLending, AddressesBorrowedByFailedRequestsAreReturned) {
    TestHeap heap;
    FakeSystem::set(granule_pages * page_bytes, 0);
    ASSERT_NE(heap.allocate(32), nullptr);
    EXPECT_EQ(heap.allocate(100 * granule_pages), nullptr);
    EXPECT_LE(reserved(heap), granule_pages);
    EXPECT_FALSE(heap.reserve(100 * granule_pages));
    EXPECT_LE(reserved(heap), granule_pages);
    EXPECT_NE(heap.allocate(32), nullptr);
}

TEST(PageHeapLending, AddressesBorrowedByRefusedMovesAreReturned) {
    if (!platform::can_move_memory()) GTEST_SKIP() << "this system cannot move memory";
    TestHeap heap;
    const auto spans = heap.allocate_all({320, 16});
    ASSERT_TRUE(address_space().memory().may_move({spans[0]->first_page, 320}));
    const PageCount more = 100 * granule_pages;
    {
        const testing::Failing failing(testing::SystemCall::move_pages);
        EXPECT_EQ(heap.heap.move(*spans[0], more, heap.path), nullptr);
        EXPECT_EQ(testing::Failing::seen(), 1U);
    }
    EXPECT_LE(reserved(heap), granule_pages);
}

TEST(PageHeapLending, AddressesGoBackWhereMemoryForAMoveIsRefused) {
    if (!platform::can_move_memory()) GTEST_SKIP() << "this system moves no memory";
    TestHeap heap;
    FakeSystem::set(granule_pages * page_bytes, 0);
    const auto spans = heap.allocate_all({320, 16});
    EXPECT_EQ(heap.heap.move(*spans[0], 100 * granule_pages, heap.path), nullptr);
    EXPECT_LE(reserved(heap), granule_pages);
}

TEST(PageHeapLending, LargeAlignmentBorrowsNoMoreThanItsPages) {
    TestHeap heap;
    Span* const span = heap.allocate(1, 256 * granule_pages);
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->first_page % (256 * granule_pages), 0U);
    EXPECT_LT(reserved(heap), 256 * granule_pages);
    EXPECT_EQ(heap.capacity(), 1U);
}

// Other threads may free and trim while `reserve` touches free memory.
TEST(PageHeapLending, AddressesThatAreBeingTouchedAreKept) {
    TestHeap heap;
    ASSERT_NE(heap.allocate(16), nullptr);
    bool was_called = false;
    before_populating = [&] {
        was_called = true;
        SlowPath path;
        heap.heap.trim(path);
    };
    EXPECT_TRUE(heap.reserve(8 * granule_pages));
    EXPECT_TRUE(was_called);
    EXPECT_GT(reserved(heap), 8 * granule_pages - 1);
    heap.trim();
    EXPECT_EQ(reserved(heap), granule_pages);
}

}  // namespace
}  // namespace tensorpool::pages
