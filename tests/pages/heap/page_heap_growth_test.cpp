#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "pages/failing_system.hpp"
#include "pages/heap/test_heap.hpp"
#include "pages/large_sizes.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::FakeSystem;
using testing::limited_options;
using testing::plain_options;
using testing::TestHeap;

HeapOptions growing_by(std::size_t step_pages, double factor, double fraction = 1.0) {
    HeapOptions options = plain_options();
    options.growth = {.step = step_pages * page_bytes, .factor = factor, .fraction = fraction};
    return options;
}

TEST(PageHeapGrowth, IsTheShortfallIfThatIsLargest) {
    TestHeap heap(growing_by(16, 0.0));
    heap.allocate(100);
    EXPECT_EQ(heap.capacity(), 112U) << "in units of 64 KiB";
}

TEST(PageHeapGrowth, IsTheStepIfThatIsLargest) {
    TestHeap heap(growing_by(64, 0.0));
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 64U);
    heap.allocate(63);
    EXPECT_EQ(heap.capacity(), 64U);
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 128U);
    EXPECT_EQ(heap.totals.growths, 2U);
    EXPECT_EQ(heap.totals.grown_bytes, 128 * page_bytes);
    EXPECT_EQ(heap.grown(), 128U);
}

TEST(PageHeapGrowth, IsAMultipleOfCapacityIfThatIsLargest) {
    TestHeap heap(growing_by(16, 0.5));
    heap.allocate(1024);
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 1024U + 512U);
}

TEST(PageHeapGrowth, HugeStepIsLimitedByExtentAndFraction) {
    HeapOptions options = growing_by(0, 0.0, 0.5);
    options.growth.step = SIZE_MAX;
    TestHeap heap(options);
    FakeSystem::set(1000 * page_bytes, 0);
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 500U);
}

TEST(PageHeapGrowth, SurplusIsLimitedByTheFractionOfAvailableMemory) {
    TestHeap heap(growing_by(1024, 0.0, 0.75));
    FakeSystem::set(2000 * page_bytes, 0);
    heap.allocate(1024);
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 1500U);
    heap.allocate(475);
    heap.allocate(400);
    EXPECT_EQ(heap.capacity(), 1900U) << "the shortfall is committed without a surplus";
    EXPECT_EQ(heap.allocate(200), nullptr);
    EXPECT_STREQ(heap.path.refusal.limit, "available memory");
    EXPECT_EQ(heap.path.refusal.limit_bytes, 2000 * page_bytes);
    EXPECT_EQ(heap.path.refusal.needed_limit, 2100 * page_bytes);
    EXPECT_EQ(heap.path.refusal.missing, 100 * page_bytes);
    EXPECT_TRUE(heap.path.refusal.knows_free);
    EXPECT_EQ(heap.path.refusal.free_pages, 0U);
    EXPECT_EQ(heap.capacity(), 1900U);
    EXPECT_NE(heap.allocate(100), nullptr);
    EXPECT_EQ(heap.capacity(), 2000U);
}

TEST(PageHeapGrowth, ReachesMaxCapacityExactlyAndNeverExceedsIt) {
    HeapOptions options = growing_by(64, 1.0);
    options.max_capacity = 1000 * page_bytes + 100;
    TestHeap heap(options);
    std::size_t in_use = 0;
    while (heap.allocate(7) != nullptr) in_use += 7;
    EXPECT_EQ(in_use, 994U);
    EXPECT_STREQ(heap.path.refusal.limit, "max_capacity");
    EXPECT_EQ(heap.path.refusal.limit_bytes, options.max_capacity);
    EXPECT_NE(heap.allocate(6), nullptr);
    EXPECT_EQ(heap.capacity(), 1000U);
    EXPECT_EQ(heap.allocate(1), nullptr);
    EXPECT_EQ(heap.totals.peak_capacity_bytes, 1000 * page_bytes);
}

TEST(PageHeapGrowth, CommitsOnlyTheShortfallBesideFreeMemory) {
    TestHeap heap(limited_options(100));
    const std::vector<Span*> spans = heap.allocate_all({60, 30});
    heap.free(spans[1]);
    ASSERT_NE(heap.allocate(40), nullptr) << "30 free pages and 10 new ones";
    EXPECT_EQ(heap.capacity(), 100U);
}

TEST(PageHeapGrowth, CommitsOnlyTheGapBetweenFreeExtents) {
    TestHeap heap(limited_options(100));
    const std::vector<Span*> spans = heap.allocate_all({30, 20, 50});
    heap.free(spans[1]);
    EXPECT_EQ(heap.trim(), 20U);
    heap.free(spans[0]);
    heap.free(spans[2]);
    ASSERT_NE(heap.allocate(100), nullptr);
    EXPECT_EQ(heap.given_back(), 20U) << "only the gap was given back";
    EXPECT_EQ(heap.capacity(), 100U);
}

TEST(PageHeapGrowth, LargeAlignmentsCommitNoSurplus) {
    TestHeap heap(growing_by(1024, 0.0));
    heap.allocate(1);
    EXPECT_EQ(heap.capacity(), 1024U);
    heap.allocate(1, 64 * granule_pages);
    EXPECT_EQ(heap.capacity(), 1025U);
}

TEST(PageHeapGrowth, TakesTheSmallestColdExtentThatFits) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({40, 1, 20, 1, 60, 1});
    const PageNumber smallest = spans[2]->first_page;
    for (const unsigned freed : {0, 2, 4}) heap.free(spans[freed]);
    heap.trim();
    EXPECT_EQ(heap.allocate(20)->first_page, smallest);
}

TEST(PageHeapGrowth, FragmentedFreeMemoryIsReleasedUnderALimit) {
    TestHeap heap(limited_options(100));
    std::vector<Span*> spans;
    for (int i = 0; i < 10; ++i) spans.push_back(heap.allocate(10));
    for (int i = 0; i < 10; i += 2) heap.free(spans[static_cast<std::size_t>(i)]);
    EXPECT_EQ(heap.free_pages(), 50U);
    ASSERT_NE(heap.allocate(50), nullptr);
    EXPECT_EQ(heap.capacity(), 100U);
    EXPECT_EQ(heap.given_back(), 50U);
}

// The extent that is given back first may be the one that the growth relied on.
TEST(PageHeapGrowth, ExtentBesideTheColdPagesMayBeReleased) {
    TestHeap heap(limited_options(100));
    std::vector<Span*> spans;
    for (int i = 0; i < 10; ++i) spans.push_back(heap.allocate(10));
    heap.free(spans[1]);
    heap.free(spans[9]);
    ASSERT_NE(heap.allocate(20), nullptr);
    EXPECT_EQ(heap.capacity(), 100U);
}

TEST(PageHeapGrowth, RequestBeyondTheLimitFailsAndKeepsSpansInUse) {
    TestHeap heap(limited_options(100));
    Span* const kept = heap.allocate(50);
    heap.address_of(*kept)[0] = 7;
    EXPECT_EQ(heap.allocate(51), nullptr);
    EXPECT_STREQ(heap.path.refusal.limit, "max_capacity");
    EXPECT_EQ(heap.address_of(*kept)[0], 7);
    EXPECT_EQ(heap.capacity(), 50U);
    EXPECT_NE(heap.allocate(50), nullptr);
}

TEST(PageHeapGrowth, RequestBeyondTheAddressSpaceFails) {
    TestHeap heap;
    ASSERT_NE(heap.allocate(1), nullptr);
    EXPECT_EQ(heap.allocate(address_space().max_pages()), nullptr);
    EXPECT_STREQ(heap.path.refusal.limit, "address space");
    EXPECT_STRNE(heap.path.refusal.advice, "");
    EXPECT_EQ(heap.capacity(), 1U);
    EXPECT_NE(heap.allocate(1), nullptr);
}

TEST(PageHeapGrowth, RefusedRequestsLeaveNoRecords) {
    TestHeap heap;
    heap.allocate(1);
    const std::size_t record_bytes = heap.totals.record_bytes.load();
    for (int i = 0; i < 200; ++i) EXPECT_EQ(heap.allocate(max_large_pages + 1), nullptr);
    EXPECT_EQ(heap.totals.record_bytes.load(), record_bytes);
}

TEST(PageHeapGrowth, ReserveCommitsExactlyTheMissingBytes) {
    TestHeap heap(growing_by(1024, 1.0));
    ASSERT_TRUE(heap.reserve(100));
    EXPECT_EQ(heap.capacity(), 100U) << "no surplus";
    EXPECT_EQ(heap.free_pages(), 100U);
    EXPECT_TRUE(heap.reserve(100));
    EXPECT_TRUE(heap.reserve(7));
    EXPECT_EQ(heap.capacity(), 100U);
    heap.allocate(100);
    ASSERT_TRUE(heap.reserve(130));
    EXPECT_EQ(heap.capacity(), 130U);
}

TEST(PageHeapGrowth, ReserveTouchesTheCommittedPages) {
    TestHeap heap;
    const std::size_t before = platform::resident_memory();
    ASSERT_TRUE(heap.reserve(8192));
    EXPECT_GE(platform::resident_memory(), before + 8192 * page_bytes);
}

// With the lock held, this test would hang.
TEST(PageHeapGrowth, ReserveTouchesWithoutTheLock) {
    TestHeap heap;
    Span* taken = nullptr;
    testing::before_populating = [&] { std::thread([&] { taken = heap.allocate(768); }).join(); };
    ASSERT_TRUE(heap.reserve(4096));
    EXPECT_EQ(testing::before_populating, nullptr);
    ASSERT_NE(taken, nullptr);
    EXPECT_EQ(heap.free_pages(), 4096U - 768U) << "the rest of the reserved pages";
}

TEST(PageHeapGrowth, ReserveTouchesEveryFreeExtent) {
    TestHeap heap;
    const std::vector<PageCount> sizes(300, 3);
    const std::vector<Span*> spans = heap.allocate_all(sizes);
    for (std::size_t i = 0; i < spans.size(); i += 2) heap.free(spans[i]);
    const std::size_t before = platform::resident_memory();
    ASSERT_TRUE(heap.reserve(900));
    EXPECT_EQ(heap.capacity(), 900U);
    EXPECT_GE(platform::resident_memory(), before + 450 * page_bytes);
}

TEST(PageHeapGrowth, ReserveBeyondLimitsFailsAndChangesNothing) {
    TestHeap heap(limited_options(100));
    EXPECT_FALSE(heap.reserve(101));
    EXPECT_STREQ(heap.path.refusal.limit, "max_capacity");
    EXPECT_FALSE(heap.reserve(std::size_t{1} << 32));
    EXPECT_FALSE(heap.reserve((std::size_t{1} << 32) + 1));
    EXPECT_FALSE(heap.reserve(SIZE_MAX / page_bytes));
    EXPECT_EQ(heap.capacity(), 0U);
    FakeSystem::set(50 * page_bytes, 0);
    EXPECT_FALSE(heap.reserve(60));
    EXPECT_STREQ(heap.path.refusal.limit, "available memory");
    EXPECT_EQ(heap.committed(), 0U);
    EXPECT_TRUE(heap.reserve(50));
}

}  // namespace
}  // namespace tensorpool::pages
