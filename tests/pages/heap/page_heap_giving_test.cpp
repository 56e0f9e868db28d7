#include <gtest/gtest.h>

#include <barrier>
#include <cstring>
#include <thread>

#include "pages/heap/test_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::FakeSystem;
using testing::limited_options;
using testing::plain_options;
using testing::TestHeap;

HeapOptions keeping_at_most(std::size_t pages) {
    HeapOptions options = plain_options();
    options.retain.bytes = pages * page_bytes;
    return options;
}

TEST(PageHeapTrim, ReturnsExactlyTheFreeMemory) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({10, 20, 30});
    heap.address_of(*spans[1])[0] = 9;
    heap.free(spans[0]);
    heap.free(spans[2]);
    EXPECT_EQ(heap.trim(), 40U);
    EXPECT_EQ(heap.capacity(), 20U);
    EXPECT_EQ(heap.committed(), 20U);
    EXPECT_EQ(heap.free_pages(), 0U);
    EXPECT_EQ(heap.given_back(), 40U);
    EXPECT_EQ(heap.totals.give_backs, 2U);
    EXPECT_EQ(heap.totals.given_back_bytes, 40 * page_bytes);
    EXPECT_EQ(heap.address_of(*spans[1])[0], 9);
    EXPECT_EQ(heap.trim(), 0U);
}

TEST(PageHeapTrim, ReturnedMemoryReadsAsZerosOnReuse) {
    TestHeap heap;
    Span* span = heap.allocate(4096);
    std::memset(heap.address_of(*span), 1, span->bytes());
    const std::size_t resident = platform::resident_memory();
    heap.free(span);
    heap.trim();
    EXPECT_LE(platform::resident_memory() + 3000 * page_bytes, resident);
    span = heap.allocate(4096);
    EXPECT_TRUE(span->clean);
    for (std::size_t at = 0; at < span->bytes(); at += page_bytes / 2) {
        ASSERT_EQ(heap.address_of(*span)[at], 0);
    }
}

TEST(PageHeapOffer, OfferedMemoryStaysCommittedAndFree) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({100, 20, 300});
    for (Span* const span : spans) std::memset(heap.address_of(*span), 1, span->bytes());
    heap.free(spans[0]);
    heap.free(spans[2]);
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 400 * page_bytes);
    heap.heap.offer_free();
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 0U);
    EXPECT_EQ(heap.capacity(), 420U);
    EXPECT_EQ(heap.free_pages(), 400U);
    EXPECT_EQ(heap.address_of(*spans[1])[20 * page_bytes - 1], 1) << "in use, and not offered";
}

TEST(PageHeapOffer, WhatIsFreedLaterIsNotOffered) {
    TestHeap heap;
    Span* span = heap.allocate(400);
    std::memset(heap.address_of(*span), 1, span->bytes());
    heap.free(span);
    heap.heap.offer_free();
    span = heap.allocate(300);
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 0U);
    heap.free(span);
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 300 * page_bytes);
    heap.trim();
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 0U);
}

TEST(PageHeapOffer, UntouchedMemoryIsNotCountedAsOffered) {
    HeapOptions options = plain_options();
    options.growth = {.step = 1000 * page_bytes, .factor = 0.0, .fraction = 1.0};
    TestHeap heap(options);
    Span* const first = heap.allocate(100);
    Span* const second = heap.allocate(50);
    ASSERT_GE(heap.free_pages(), 800U);
    heap.free(first);
    heap.heap.offer_free();
    heap.free(second);
    EXPECT_EQ(heap.heap.kept().unoffered_bytes(), 50 * page_bytes);
}

TEST(PageHeapOffer, UntouchedMemoryNeedsNoOffer) {
    TestHeap heap;
    ASSERT_TRUE(heap.heap.capacity().bytes() == 0);
    heap.free(heap.allocate(10));
    EXPECT_LE(heap.heap.kept().unoffered_bytes(), 10 * page_bytes);
}

TEST(PageHeapTrim, DropsTheFloorOfReserve) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(100));
    EXPECT_EQ(heap.trim(), 100U);
    heap.free(heap.allocate(10));
    heap.give_back(10);
    EXPECT_EQ(heap.capacity(), 0U) << "no floor is left";
}

TEST(PageHeapGiving, ReturnsNoMoreThanRequested) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({50, 1, 30});
    heap.free(spans[0]);
    heap.free(spans[2]);
    heap.give_back(60);
    EXPECT_EQ(heap.given_back(), 60U);
    EXPECT_EQ(heap.capacity(), 21U);
    EXPECT_EQ(heap.free_pages(), 20U);
    heap.give_back(100);
    EXPECT_EQ(heap.capacity(), 1U);
}

TEST(PageHeapGiving, KeepsTheLargestExtentIfAnotherHoldsEnough) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({100, 1, 20, 1});
    heap.free(spans[0]);
    heap.free(spans[2]);
    heap.give_back(15);
    EXPECT_EQ(heap.capacity(), 107U);
    heap.allocate(100);
    EXPECT_EQ(heap.capacity(), 107U) << "it did not grow";
}

TEST(PageHeapGiving, TakesTheLargestFirstIfNoneHoldsEnough) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({30, 1, 20, 1, 10, 1});
    heap.free(spans[0]);
    heap.free(spans[2]);
    heap.free(spans[4]);
    heap.give_back(38);
    EXPECT_EQ(heap.capacity(), 25U);
    heap.allocate(20);
    EXPECT_EQ(heap.capacity(), 25U) << "the extent of 20 stays whole";
}

TEST(PageHeapGiving, KeepsTheFrontOfAPartlyReturnedExtent) {
    TestHeap heap;
    Span* const span = heap.allocate(50);
    const PageNumber first = span->first_page;
    heap.free(span);
    heap.give_back(20);
    const std::size_t grown = heap.grown();
    EXPECT_EQ(heap.allocate(30)->first_page, first);
    EXPECT_EQ(heap.grown(), grown);
}

TEST(PageHeapGiving, NeverGoesBelowTheReservedBytes) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(40));
    Span* const span = heap.allocate(60);
    heap.free(span);
    heap.give_back(60);
    EXPECT_EQ(heap.capacity(), 40U);
    heap.give_back(1);
    EXPECT_EQ(heap.capacity(), 40U);
}

TEST(PageHeapGiving, NeverGoesBelowAReserveThatEndsWithinAPage) {
    TestHeap heap;
    const std::size_t bytes = 40 * page_bytes + 100;
    ASSERT_TRUE(heap.heap.reserve(bytes, heap.path));
    heap.free(heap.allocate(60));
    heap.give_back(60);
    EXPECT_GE(heap.capacity() * page_bytes, bytes);
}

TEST(PageHeapGiving, TwoConcurrentThreadsKeepTheReservedBytes) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(40));
    std::barrier together(2);
    const auto give_back = [&] {
        SlowPath path;
        for (unsigned round = 0; round != 300; ++round) {
            together.arrive_and_wait();
            heap.heap.give_back(20 * page_bytes, path);
            together.arrive_and_wait();
        }
    };
    std::thread other(give_back);
    SlowPath path;
    for (unsigned round = 0; round != 300; ++round) {
        heap.free(heap.allocate(60));
        together.arrive_and_wait();
        heap.heap.give_back(20 * page_bytes, path);
        together.arrive_and_wait();
        EXPECT_EQ(heap.capacity(), 40U);
    }
    other.join();
}

TEST(PageHeapGiving, SmallerReserveDoesNotLowerTheFloor) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(40));
    ASSERT_TRUE(heap.reserve(10));
    heap.give_back(40);
    EXPECT_EQ(heap.capacity(), 40U);
}

TEST(PageHeapRetention, KeepsAtMostTheRetainedBytes) {
    TestHeap heap(keeping_at_most(32));
    const std::vector<Span*> spans = heap.allocate_all({20, 1, 20, 1, 20});
    heap.free(spans[0]);
    EXPECT_EQ(heap.free_pages(), 20U);
    heap.free(spans[2]);
    EXPECT_EQ(heap.free_pages(), 32U);
    heap.free(spans[4]);
    EXPECT_EQ(heap.free_pages(), 32U);
    EXPECT_EQ(heap.capacity(), 34U);
}

TEST(PageHeapRetention, KeepsNothingWithRetentionOfZeroBytes) {
    TestHeap heap(keeping_at_most(0));
    heap.free(heap.allocate(100));
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, ReturnsMemoryThatWasFreeForAWholePeriod) {
    TestHeap heap;
    heap.free(heap.allocate(100));
    EXPECT_TRUE(heap.end_period());
    EXPECT_EQ(heap.capacity(), 100U) << "in use during the first period";
    EXPECT_TRUE(heap.end_period());
    EXPECT_EQ(heap.capacity(), 0U);
    EXPECT_EQ(heap.given_back(), 100U);
}

TEST(PageHeapRetention, KeepsMemoryThatWasNeededInThePeriod) {
    TestHeap heap;
    heap.free(heap.allocate(100));
    heap.end_period();
    Span* const needed = heap.allocate(70);
    heap.free(needed);
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 70U) << "at least 30 pages were free at all times";
    heap.free(heap.allocate(70));
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 70U);
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, DoesNothingWithinAPeriod) {
    TestHeap heap;
    heap.free(heap.allocate(100));
    heap.end_period();
    const std::uint32_t period = heap.heap.kept().period();
    FakeSystem::pass_ms(999);
    EXPECT_FALSE(heap.heap.keep_to_retention(heap.path));
    EXPECT_EQ(heap.heap.kept().period(), period);
    EXPECT_EQ(heap.capacity(), 100U);
    FakeSystem::pass_ms(1);
    EXPECT_TRUE(heap.heap.keep_to_retention(heap.path));
    EXPECT_EQ(heap.heap.kept().period(), period + 1);
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, ReturnsMemoryAfterTheClockWentBack) {
    constexpr std::uint64_t hour_ns = 3'600'000'000'000;
    TestHeap heap;
    const std::uint64_t begin_ns = FakeSystem::now_ns;
    FakeSystem::now_ns = begin_ns + 5 * hour_ns;
    heap.free(heap.allocate(100));
    heap.end_period();
    FakeSystem::now_ns = begin_ns;
    heap.heap.keep_to_retention(heap.path);
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, PeriodsOfZeroLengthEndOnEveryCall) {
    HeapOptions options = plain_options();
    options.retain.milliseconds = 0;
    TestHeap heap(options);
    heap.free(heap.allocate(100));
    EXPECT_TRUE(heap.heap.keep_to_retention(heap.path));
    EXPECT_TRUE(heap.heap.keep_to_retention(heap.path));
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, KeepsReservedMemory) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(40));
    heap.free(heap.allocate(100));
    heap.end_period();
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 40U);
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 40U);
}

TEST(PageHeapRetention, PeriodIsATenthWhileMemoryIsShort) {
    TestHeap heap;
    heap.free(heap.allocate(100));
    FakeSystem::set(std::size_t{1} << 20, std::size_t{1} << 30);
    heap.end_period();
    FakeSystem::pass_ms(99);
    EXPECT_FALSE(heap.heap.keep_to_retention(heap.path));
    FakeSystem::pass_ms(1);
    EXPECT_TRUE(heap.heap.keep_to_retention(heap.path));
    EXPECT_EQ(heap.capacity(), 0U);
}

TEST(PageHeapRetention, PageInUseBetweenFreePagesStays) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({30, 1, 30});
    std::memset(heap.address_of(*spans[1]), 5, page_bytes);
    heap.free(spans[0]);
    heap.free(spans[2]);
    heap.end_period();
    heap.end_period();
    EXPECT_EQ(heap.capacity(), 1U);
    EXPECT_EQ(heap.address_of(*spans[1])[page_bytes - 1], 5);
}

}  // namespace
}  // namespace tensorpool::pages
