#include <gtest/gtest.h>

#include "pages/heap/test_heap.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {
namespace {

using testing::plain_options;
using testing::TestHeap;

constexpr std::uint64_t cheap_ns = 1000;
constexpr std::uint64_t expensive_ns = 100 * FolioChoice::usual_ns;

platform::FolioSizes only_huge() noexcept {
    return {.huge = true, .medium = 0};
}

/// A heap that grows by 8 granules, in which each first touch takes as long as the test sets.
class FreshMemoryTest : public ::testing::Test {
protected:
    FreshMemoryTest() {
        touch_ns_ = cheap_ns;
        now_ns_ = 0;
    }

    static void touches_take(std::uint64_t ns) { touch_ns_ = ns; }
    /// Allocates a span of a bucket that has grown. Its request is in `path().untried`.
    Span* grow_bucket(PageCount pages) {
        path().untried = {};
        return heap_.heap.allocate({.pages = pages, .kind = kind_of_bucket(4), .huge = true},
                                   path());
    }
    PageRun untried() { return path().untried; }
    SlowPath& path() { return heap_.path; }
    TestHeap& heap() { return heap_; }
    FolioChoice& choice() { return choice_; }

private:
    HeapOptions options() {
        HeapOptions options = plain_options();
        options.growth = {.step = 8 * granule_pages * page_bytes, .factor = 0.0, .fraction = 1.0};
        options.huge_pages = HugePages::buckets;
        options.folios = &choice_;
        // Called before and after each touch.
        options.thread_time_ns = []() noexcept { return now_ns_ += touch_ns_; };
        return options;
    }

    inline static std::uint64_t touch_ns_;
    inline static std::uint64_t now_ns_;
    FolioChoice choice_{only_huge};
    TestHeap heap_{options()};
};

TEST_F(FreshMemoryTest, GranuleRequestsPagesWhenItsFirstSpanIsTaken) {
    const Span* const first = grow_bucket(granule_pages - 8);
    EXPECT_EQ(untried().first, first->first_page);
    EXPECT_EQ(untried().count, granule_pages);
    grow_bucket(4);
    EXPECT_EQ(untried().count, 0U) << "no granule begins in it";
    const Span* const across = grow_bucket(16);
    EXPECT_EQ(untried().first, across->first_page + 4);
}

TEST_F(FreshMemoryTest, PartlyCommittedGranuleRequestsNothing) {
    ASSERT_NE(heap().allocate(8 * granule_pages - 8), nullptr);
    grow_bucket(4);
    EXPECT_EQ(untried().count, 0U);
}

TEST_F(FreshMemoryTest, ReusedMemoryRequestsNothing) {
    Span* const used = heap().allocate(2 * granule_pages);
    Span* const rest = heap().allocate(6 * granule_pages);
    heap().free(used);
    EXPECT_EQ(grow_bucket(16)->first_page % granule_pages, 0U);
    EXPECT_EQ(untried().count, 0U);
    heap().free(rest);
}

TEST_F(FreshMemoryTest, ExpensiveHugePageStopsRequestsOfTheNextGranules) {
    grow_bucket(granule_pages);
    touches_take(expensive_ns);
    heap().heap.try_huge_page(path());
    for (std::uint32_t i = 0; i < FolioChoice::first_pause; ++i) {
        grow_bucket(granule_pages);
        ASSERT_EQ(untried().count, 0U) << i;
    }
    grow_bucket(granule_pages);
    EXPECT_NE(untried().count, 0U);
}

TEST_F(FreshMemoryTest, CheapHugePageChangesNothing) {
    for (int i = 0; i < 20; ++i) {
        grow_bucket(granule_pages);
        ASSERT_NE(untried().count, 0U);
        heap().heap.try_huge_page(path());
    }
}

TEST_F(FreshMemoryTest, TryHugePageTouchesOnePageAndChangesNoContent) {
    Span* const span = grow_bucket(granule_pages);
    unsigned char* const block = heap().address_of(*span);
    *block = 7;
    heap().heap.try_huge_page(path());
    EXPECT_EQ(*block, 7);
}

TEST_F(FreshMemoryTest, TryHugePageSkipsFreedMemory) {
    Span* const span = grow_bucket(granule_pages);
    heap().free(span);
    heap().trim();
    touches_take(expensive_ns);
    heap().heap.try_huge_page(path());
    EXPECT_EQ(choice().for_granule(), Folio::huge);
}

TEST_F(FreshMemoryTest, TryHugePageSkipsMemoryOfALargeBlock) {
    Span* const span = grow_bucket(granule_pages);
    const PageNumber first = span->first_page;
    heap().free(span);
    ASSERT_EQ(heap().allocate(granule_pages)->first_page, first);
    touches_take(expensive_ns);
    heap().heap.try_huge_page(path());
    EXPECT_EQ(choice().for_granule(), Folio::huge) << "none was measured";
}

TEST_F(FreshMemoryTest, PrefaultMeasuresGranulesAndStopsExpensiveRequests) {
    Span* const span = heap().allocate(4 * granule_pages);
    touches_take(expensive_ns);
    heap().heap.fresh().prefault({span->first_page, span->pages});
    EXPECT_EQ(choice().for_granule(), Folio::small);
}

TEST_F(FreshMemoryTest, PrefaultOfLessThanAGranuleMeasuresNothing) {
    Span* const span = heap().allocate(granule_pages);
    touches_take(expensive_ns);
    heap().heap.fresh().prefault({span->first_page + 1, span->pages - 1});
    EXPECT_EQ(choice().for_granule(), Folio::huge);
}

TEST_F(FreshMemoryTest, WithHugePagesNeverPrefaultRequestsNothing) {
    HeapOptions options = plain_options();
    FolioChoice choice(only_huge);
    options.folios = &choice;
    options.thread_time_ns = []() noexcept -> std::uint64_t {
        return testing::FakeSystem::now_ns += expensive_ns;
    };
    TestHeap heap(options, 1001);
    Span* const span = heap.allocate(2 * granule_pages);
    heap.heap.fresh().prefault({span->first_page, span->pages});
    EXPECT_EQ(choice.for_granule(), Folio::huge) << "none was measured";
}

}  // namespace
}  // namespace tensorpool::pages
