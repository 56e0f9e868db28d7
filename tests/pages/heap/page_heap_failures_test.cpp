// The page heap when system calls fail.

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "pages/failing_system.hpp"
#include "pages/heap/page_heap_model.hpp"
#include "support/child_process.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::holds_in_child;
using testing::limited_options;
using testing::PageHeapModel;
using testing::plain_options;
using testing::SystemCall;
using testing::TestHeap;

TEST(PageHeapFailures, RefusedCommitIsReportedAndLeavesNothingBehind) {
    TestHeap heap;
    heap.allocate(10);
    {
        const Failing failing(SystemCall::commit_pages);
        EXPECT_EQ(heap.allocate(20), nullptr);
        EXPECT_STREQ(heap.path.refusal.limit, "what the system commits");
        EXPECT_EQ(heap.path.refusal.needed_limit, 0U) << "no limit would help";
        EXPECT_NE(std::string(heap.path.refusal.advice).find("ulimit -v"), std::string::npos);
        EXPECT_FALSE(heap.reserve(50));
    }
    EXPECT_EQ(heap.capacity(), 10U);
    EXPECT_EQ(heap.committed(), 10U);
    EXPECT_EQ(heap.grown(), 10U);
    EXPECT_NE(heap.allocate(20), nullptr);
}

TEST(PageHeapFailures, RefusedCommitsLeaveNoRecords) {
    TestHeap heap;
    heap.allocate(10);
    const std::size_t record_bytes = heap.totals.record_bytes.load();
    const Failing failing(SystemCall::commit_pages);
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(heap.allocate(20), nullptr);
    EXPECT_EQ(heap.totals.record_bytes.load(), record_bytes);
}

TEST(PageHeapFailures, RetriesTheShortfallWhenTheSystemRefusesTheSurplus) {
    HeapOptions options = plain_options();
    options.growth = {.step = 1024 * page_bytes, .factor = 0.0, .fraction = 1.0};
    TestHeap heap(options);
    const Failing failing(SystemCall::commit_pages, 0, 1);
    EXPECT_NE(heap.allocate(20), nullptr);
    EXPECT_EQ(heap.capacity(), 20U);
    EXPECT_EQ(heap.committed(), 20U);
}

TEST(PageHeapFailures, FreeMemoryIsReturnedWhenTheSystemCommitsNoMore) {
    TestHeap heap;
    const std::vector<Span*> spans = heap.allocate_all({30, 1, 30, 1});
    heap.free(spans[0]);
    heap.free(spans[2]);
    const Failing failing(SystemCall::commit_pages, 0, 1);
    EXPECT_NE(heap.allocate(40), nullptr);
    EXPECT_GE(heap.given_back(), 30U);
}

TEST(PageHeapFailures, PagesThatCannotBeDroppedStayFreeAndCommitted) {
    TestHeap heap;
    heap.free(heap.allocate(32));
    {
        const Failing failing(SystemCall::decommit_pages);
        EXPECT_EQ(heap.trim(), 0U);
        heap.give_back(16);
    }
    EXPECT_EQ(heap.capacity(), 32U);
    EXPECT_EQ(heap.committed(), 32U);
    EXPECT_EQ(heap.free_pages(), 32U);
    EXPECT_EQ(heap.given_back(), 0U);
    EXPECT_EQ(heap.totals.given_back_bytes, 0U);
    Span* const span = heap.allocate(32);
    EXPECT_EQ(heap.grown(), 32U);
    EXPECT_FALSE(span->clean);
}

TEST(PageHeapFailures, LimitHoldsWhenNothingCanBeDropped) {
    TestHeap heap(limited_options(160));
    const std::vector<Span*> spans = heap.allocate_all({64, 16, 80});
    heap.free(spans[0]);
    heap.free(spans[2]);
    const Failing failing(SystemCall::decommit_pages);
    EXPECT_EQ(heap.allocate(96), nullptr);
    EXPECT_STREQ(heap.path.refusal.limit, "max_capacity");
    EXPECT_TRUE(heap.path.refusal.knows_free);
    EXPECT_EQ(heap.path.refusal.free_pages, 144 * page_bytes);
    EXPECT_EQ(heap.path.refusal.largest_free, 80 * page_bytes);
    EXPECT_EQ(heap.capacity(), 160U);
    EXPECT_NE(heap.allocate(80), nullptr) << "free memory still serves";
}

TEST(PageHeapFailures, HeapWithoutMemoryForItsFirstRecordRefusesAndRecovers) {
    TestHeap heap;
    {
        const Failing failing(SystemCall::commit_records);
        EXPECT_EQ(heap.allocate(1), nullptr);
        EXPECT_STREQ(heap.path.refusal.limit, "memory for the pool's records");
        EXPECT_NE(std::string(heap.path.refusal.advice).find("records"), std::string::npos);
        EXPECT_FALSE(heap.reserve(1));
    }
    EXPECT_EQ(heap.capacity(), 0U);
    EXPECT_EQ(heap.totals.reserved_bytes, 0U);
    EXPECT_NE(heap.allocate(1), nullptr);
}

// At some point a split finds no record. All spans allocated before stay unchanged.
TEST(PageHeapFailures, RequestWithoutRecordsFailsAndChangesNothing) {
    TestHeap heap;
    PageHeapModel model(heap);
    ASSERT_TRUE(heap.reserve(2000));
    {
        const Failing failing(SystemCall::commit_records);
        while (model.allocate({.pages = 2})) ASSERT_LT(model.count(), 1000U);
        EXPECT_STREQ(heap.path.refusal.limit, "memory for the pool's records");
        EXPECT_GT(heap.path.refusal.free_pages, 0U);
        EXPECT_LE(heap.path.refusal.largest_free, heap.path.refusal.free_pages);
        EXPECT_EQ(model.fault(PageHeapModel::Depth::all_words), "");
        // Freeing needs no record, and the freed memory serves the next request.
        model.free(model.count() / 2);
        EXPECT_TRUE(model.allocate({.pages = 2}));
        EXPECT_FALSE(model.allocate({.pages = 1}));
        for (std::size_t i = 0; i < model.count(); i += 2) model.free(i);
        heap.give_back(7);
        EXPECT_EQ(model.fault(PageHeapModel::Depth::all_words), "");
    }
    while (model.count() < 500) ASSERT_TRUE(model.allocate({.pages = 2}));
    EXPECT_EQ(model.fault(PageHeapModel::Depth::all_words), "");
}

TEST(PageHeapFailures, UnusedRecordOfAFailedSplitIsKept) {
    TestHeap heap;
    ASSERT_TRUE(heap.reserve(2000));
    const Failing failing(SystemCall::commit_records);
    std::vector<Span*> spans;
    while (Span* const span = heap.allocate(2)) spans.push_back(span);
    // Two neighbours become one, which leaves one free record.
    heap.free(spans[1]);
    heap.free(spans[2]);
    EXPECT_EQ(heap.allocate(1, 4), nullptr) << "needs records for pages before and behind it";
    EXPECT_NE(heap.allocate(2), nullptr) << "needs a record for pages behind it";
    EXPECT_NE(heap.allocate(2), nullptr);
    EXPECT_EQ(heap.allocate(1), nullptr);
}

/// Uses all functions of the heap, some of which may be refused. Returns the model's finding.
std::string use(TestHeap& heap, PageHeapModel& model) {
    const auto fault = [&] { return model.fault(PageHeapModel::Depth::quick); };
    for (PageCount pages = 1; pages <= 90 && fault().empty(); ++pages) {
        model.allocate({.pages = pages, .alignment = pages % 5 == 0 ? PageCount{64} : 1});
        if (pages % 3 == 0 && model.count() > 4) model.free(model.count() / 2);
        if (pages % 20 == 0) heap.trim();
        if (pages % 30 == 0) heap.reserve(heap.capacity() + 10);
        if (pages % 13 == 0) heap.give_back(17);
        if (pages % 7 == 0) heap.end_period();
    }
    model.allocate({.pages = 3 * granule_pages});
    return fault();
}

class PageHeapNthFailure : public ::testing::TestWithParam<SystemCall> {};
std::string name_of_call(const ::testing::TestParamInfo<SystemCall>& of) {
    constexpr std::array names = {"None", "CommitPages", "CommitRecords", "DecommitPages",
                                  "DecommitMap"};
    return names[static_cast<std::size_t>(of.param)];
}
INSTANTIATE_TEST_SUITE_P(Calls, PageHeapNthFailure,
                         ::testing::Values(SystemCall::commit_pages, SystemCall::commit_records,
                                           SystemCall::decommit_pages, SystemCall::decommit_map),
                         name_of_call);

TEST_P(PageHeapNthFailure, LeaksNothingAndTheHeapWorks) {
    for (unsigned number = 0; number < 1000; ++number) {
        TestHeap heap(limited_options(1700));
        PageHeapModel model(heap);
        unsigned calls = 0;
        {
            const Failing failing(GetParam(), number, 1);
            ASSERT_EQ(use(heap, model), "") << "call " << number;
            calls = Failing::seen();
        }
        ASSERT_EQ(use(heap, model), "") << "after call " << number;
        model.free_all();
        heap.trim();
        ASSERT_EQ(heap.capacity(), 0U) << "call " << number;
        ASSERT_EQ(heap.committed(), 0U) << "call " << number;
        ASSERT_EQ(model.fault(PageHeapModel::Depth::all_words), "") << "call " << number;
        if (calls <= number) return;
    }
    FAIL() << "more calls than expected";
}

// On systems with larger pages, only pages that lie entirely in a free run are dropped.
TEST(PageHeapFailures, PartsOfLargerSystemPagesAreNotAssumedZero) {
    EXPECT_TRUE(holds_in_child([] {
        TestHeap heap;
        std::vector<Span*> spans = heap.allocate_all({3, 7, 2, 9, 11});
        // Set from here on. Earlier reservations are aligned well enough.
        testing::claimed_page_bytes = 16 << 10;
        for (Span* const span : spans) std::memset(heap.address_of(*span), 0xFF, span->bytes());
        heap.free(spans[1]);
        heap.free(spans[3]);
        heap.trim();
        for (const PageCount pages : {7U, 9U, 2U}) {
            const Span* const span = heap.allocate(pages);
            if (span == nullptr) return false;
            for (std::size_t at = 0; at < span->bytes(); ++at) {
                if (span->clean && heap.address_of(*span)[at] != 0) return false;
            }
        }
        return heap.address_of(*spans[2])[0] == 0xFF;
    }));
}

}  // namespace
}  // namespace tensorpool::pages
