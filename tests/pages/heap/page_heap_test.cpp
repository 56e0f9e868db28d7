#include "pages/heap/page_heap.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "pages/heap/test_heap.hpp"

namespace tensorpool::pages {
namespace {

using testing::limited_options;
using testing::plain_options;
using testing::TestHeap;

const PageMap& map() {
    return address_space().map();
}

bool reads_as_zeros(const unsigned char* begin, std::size_t bytes) {
    return std::all_of(begin, begin + bytes, [](unsigned char c) { return c == 0; });
}

TEST(PageHeap, TakesNothingBeforeTheFirstRequest) {
    const TestHeap heap;
    EXPECT_EQ(heap.capacity(), 0U);
    EXPECT_EQ(heap.committed(), 0U);
    EXPECT_EQ(heap.totals.reserved_bytes, 0U);
}

TEST(PageHeap, SpanIsCommittedCleanAndInThePageMap) {
    TestHeap heap;
    Span* const span = heap.allocate(20);
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->pages, 20U);
    EXPECT_TRUE(span->clean);
    EXPECT_TRUE(reads_as_zeros(heap.address_of(*span), span->bytes()));
    std::memset(heap.address_of(*span), 1, span->bytes());
    EXPECT_EQ(map().at(span->first_page).span(), span);
    EXPECT_EQ(map().at(span->first_page).pool_number(), heap.heap.pool_number());
    EXPECT_EQ(map().at(span->first_page).kind(), PageKind::large_in_use);
    EXPECT_EQ(heap.capacity(), 20U);
    EXPECT_EQ(heap.committed(), 20U);
    EXPECT_EQ(heap.free_pages(), 0U);
}

TEST(PageHeap, RunsHoldZerosUntilOneOfOtherContentJoins) {
    TestHeap heap;
    const auto free_as = [&](Span* span, Zeroed zeroed) {
        heap.heap.free(*span, heap.path, zeroed);
    };
    Span* const first = heap.allocate(20);
    Span* const second = heap.allocate(20);
    free_as(first, Zeroed::yes);
    free_as(second, Zeroed::yes);
    Span* const joined = heap.allocate(40);
    EXPECT_TRUE(joined->holds_zeros());
    EXPECT_FALSE(joined->clean) << "it was used";
    free_as(joined, Zeroed::yes);
    Span* const front = heap.allocate(10);
    Span* const back = heap.allocate(30);
    EXPECT_TRUE(front->holds_zeros());
    EXPECT_TRUE(back->holds_zeros());
    free_as(front, Zeroed::no);
    free_as(back, Zeroed::yes);
    EXPECT_FALSE(heap.allocate(40)->holds_zeros());
}

TEST(PageHeap, FreedSpanIsReusedAndNotClean) {
    TestHeap heap;
    Span* const first = heap.allocate(20);
    const PageNumber page = first->first_page;
    heap.free(first);
    EXPECT_EQ(heap.free_pages(), 20U);
    Span* const second = heap.allocate(20);
    EXPECT_EQ(second->first_page, page);
    EXPECT_FALSE(second->clean);
    EXPECT_EQ(heap.grown(), 20U) << "nothing was committed for it";
}

TEST(PageHeap, CountsTheFreePagesThatWereNeverTouched) {
    HeapOptions options = testing::plain_options();
    options.growth = {.step = 128 * page_bytes, .factor = 0.0, .fraction = 1.0};
    TestHeap heap(options);
    const auto untouched = [&] { return heap.totals.untouched_bytes / page_bytes; };
    Span* const span = heap.allocate(32);
    EXPECT_EQ(heap.free_pages(), 96U);
    EXPECT_EQ(untouched(), 96U);
    heap.free(span);
    EXPECT_EQ(untouched(), 96U) << "the run that was joined with them may have been touched";
    Span* const again = heap.allocate(48);
    EXPECT_EQ(untouched(), 80U);
    Span* const more = heap.allocate(40);
    EXPECT_EQ(untouched(), 40U);
    heap.free(again);
    EXPECT_EQ(untouched(), 40U);
    heap.free(more);
    EXPECT_EQ(untouched(), 40U);
    heap.trim();
    EXPECT_EQ(untouched(), 0U);
    EXPECT_EQ(heap.capacity(), 0U);
    static_cast<void>(heap.allocate(32));
    EXPECT_EQ(untouched(), 96U);
    ASSERT_TRUE(heap.reserve(128));
    EXPECT_EQ(heap.free_pages(), 96U);
    EXPECT_EQ(untouched(), 0U) << "a reservation touches its pages";
}

TEST(PageHeap, RemainderOfASplitExtentIsUsedNext) {
    TestHeap heap;
    Span* const whole = heap.allocate(20);
    const PageNumber page = whole->first_page;
    heap.free(whole);
    Span* const a = heap.allocate(5);
    Span* const b = heap.allocate(15);
    EXPECT_EQ(a->first_page, page);
    EXPECT_EQ(b->first_page, page + 5);
    EXPECT_EQ(heap.capacity(), 20U);
    EXPECT_EQ(heap.free_pages(), 0U);
}

TEST(PageHeap, FreedNeighboursJoinInAnyOrder) {
    for (unsigned order = 0; order < 6; ++order) {
        TestHeap heap;
        std::vector<Span*> spans = heap.allocate_all({3, 4, 5});
        const PageNumber page = spans[0]->first_page;
        std::vector<unsigned> turns = {0, 1, 2};
        for (unsigned i = 0; i < order; ++i) std::next_permutation(turns.begin(), turns.end());
        for (const unsigned turn : turns) heap.free(spans[turn]);
        Span* const joined = heap.allocate(12);
        EXPECT_EQ(joined->first_page, page);
        EXPECT_EQ(heap.capacity(), 12U) << "order " << order;
    }
}

TEST(PageHeap, JoinedExtentIsCleanOnlyIfAllOfItIs) {
    TestHeap heap;
    Span* const used = heap.allocate(4);
    heap.free(used);
    ASSERT_TRUE(heap.reserve(8));
    EXPECT_FALSE(heap.allocate(8)->clean);
}

TEST(PageHeap, AlignedSpansCommitNothingBeforeThem) {
    TestHeap heap;
    heap.allocate(1);
    for (const PageCount alignment : {2U, 16U, 512U, 1024U, 4096U}) {
        Span* const span = heap.allocate(3, alignment);
        ASSERT_NE(span, nullptr) << alignment;
        const auto address = reinterpret_cast<std::uintptr_t>(heap.address_of(*span));
        EXPECT_EQ(address % (alignment * page_bytes), 0U) << alignment;
    }
    EXPECT_EQ(heap.capacity(), 1U + 5 * 3U);
    Span* const between = heap.allocate(200);
    Span* const last = heap.allocate(3, 4096);
    EXPECT_LT(between->first_page, last->first_page) << "the gap before an aligned span is used";
}

TEST(PageHeap, RequestThatMayNotGrowUsesFreeMemoryOnly) {
    TestHeap heap;
    const PageRequest request{.pages = 4, .may_grow = false};
    EXPECT_EQ(heap.heap.allocate(request, heap.path), nullptr);
    EXPECT_EQ(heap.capacity(), 0U);
    heap.free(heap.allocate(8));
    EXPECT_NE(heap.heap.allocate(request, heap.path), nullptr);
    EXPECT_EQ(heap.capacity(), 8U);
}

TEST(PageHeap, BucketSpanIsFoundFromEveryPage) {
    TestHeap heap;
    Span* const span = heap.allocate(9, 1, kind_of_bucket(5));
    for (PageNumber page = span->first_page; page < span->end_page(); ++page) {
        EXPECT_EQ(map().at(page).span(), span);
        EXPECT_EQ(map().at(page).bucket(), 5U);
    }
    const PageNumber first = span->first_page;
    heap.free(span);
    EXPECT_EQ(map().at(first).kind(), PageKind::extent_hot);
    for (PageNumber page = first + 1; page < first + 8; ++page) EXPECT_TRUE(map().at(page).empty());
}

TEST(PageHeap, LargeSpanIsFoundFromEveryPageUntilFreed) {
    TestHeap heap;
    Span* const guard_before = heap.allocate(1);
    Span* const span = heap.allocate(3 * granule_pages);
    Span* const guard_behind = heap.allocate(1);
    const PageNumber middle = span->first_page + 2 * granule_pages + 7;
    EXPECT_EQ(map().find(map().address_of(middle), heap.heap.pool_number()).span(), span);
    EXPECT_EQ(map().find(map().address_of(span->first_page + 1), heap.heap.pool_number()).span(),
              span);
    heap.free(span);
    EXPECT_TRUE(map().find(map().address_of(middle), heap.heap.pool_number()).empty());
    EXPECT_NE(guard_before, nullptr);
    EXPECT_NE(guard_behind, nullptr);
}

TEST(PageHeap, TwoHeapsNeverJoinEachOthersPages) {
    TestHeap one(plain_options(), 1000);
    TestHeap other(plain_options(), 1001);
    // Whole loans, so that spans of the two heaps are adjacent. The first may lie in gaps that
    // earlier heaps of the process left.
    const PageCount loan = address_space().usual_loan(0);
    Span* a = nullptr;
    Span* b = nullptr;
    do {
        a = one.allocate(loan);
        b = other.allocate(loan);
        ASSERT_TRUE(a != nullptr && b != nullptr);
    } while (a->end_page() != b->first_page);
    const PageCount before = one.capacity() + other.capacity();
    one.free(a);
    other.free(b);
    EXPECT_EQ(one.trim(), loan);
    EXPECT_EQ(other.trim(), loan);
    EXPECT_EQ(one.capacity() + other.capacity(), before - 2 * loan);
    EXPECT_EQ(one.allocate(loan + 1)->pages, loan + 1) << "needs another loan";
}

TEST(PageHeap, DestructorReturnsEverything) {
    PageNumber first = 0;
    {
        TestHeap heap;
        Span* const span = heap.allocate(100);
        first = span->first_page;
        std::memset(heap.address_of(*span), 1, span->bytes());
        heap.free(heap.allocate(50));
    }
    EXPECT_TRUE(map().at(first).empty());
    TestHeap next;
    Span* const span = next.allocate(100);
    EXPECT_EQ(span->first_page, first) << "the same pages serve the next pool";
    EXPECT_TRUE(reads_as_zeros(next.address_of(*span), span->bytes()));
    EXPECT_EQ(next.capacity(), 100U);
}

TEST(PageHeap, DestructorRestoresTheBudget) {
    testing::FakeSystem::set(std::size_t{1} << 30, 0);
    limits::CommitBudget budget(testing::FakeSystem::source());
    {
        statistics::PoolTotals totals{};
        PageHeap heap(address_space(), budget, 1000, plain_options(), totals);
        SlowPath path;
        ASSERT_NE(heap.allocate({.pages = 30}, path), nullptr);
        heap.free(*heap.allocate({.pages = 20}, path), path);
        EXPECT_EQ(budget.committed(), 50 * page_bytes);
    }
    EXPECT_EQ(budget.committed(), 0U);
}

TEST(PageHeap, ThreadsGetDisjointPages) {
    TestHeap heap(limited_options(4096));
    std::vector<std::thread> workers;
    for (unsigned worker = 1; worker <= 4; ++worker) {
        workers.emplace_back([&heap, worker] {
            SlowPath path;
            for (unsigned step = 0; step < 1000; ++step) {
                const PageCount pages = 1 + (step * worker) % 40;
                Span* const span = heap.heap.allocate({.pages = pages}, path);
                if (span == nullptr) continue;
                unsigned char* const begin = heap.address_of(*span);
                begin[0] = begin[span->bytes() - 1] = static_cast<unsigned char>(worker);
                if (step % 50 == 0) heap.heap.trim(path);
                if (begin[0] != worker || begin[span->bytes() - 1] != worker) ADD_FAILURE();
                heap.heap.free(*span, path);
            }
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(heap.capacity(), heap.free_pages());
    EXPECT_EQ(heap.committed(), heap.capacity());
    heap.trim();
    EXPECT_EQ(heap.capacity(), 0U);
}

}  // namespace
}  // namespace tensorpool::pages
