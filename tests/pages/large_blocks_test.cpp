#include "pages/large_blocks.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "pages/failing_system.hpp"
#include "pages/heap/test_heap.hpp"
#include "support/wait_until.hpp"

namespace tensorpool::pages {
namespace {

using testing::Failing;
using testing::limited_options;
using testing::plain_options;
using testing::SystemCall;
using testing::TestHeap;

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// Large blocks with a heap of their own.
class Blocks {
public:
    explicit Blocks(const HeapOptions& options = plain_options()) : heap(options) {}

    Span* allocate(std::size_t bytes, std::size_t alignment = 64) {
        const auto [span, from_cache] = large.allocate(bytes, alignment, heap.path);
        hit = from_cache;
        return span;
    }
    Span* allocate_tightly(std::size_t bytes) {
        return large.allocate_tightly(bytes, 64, heap.path);
    }
    void free(Span* span) { large.free(*span, heap.path); }
    std::size_t cached() const { return heap.totals.large_cached_bytes; }
    static PageKind kind_of(const Span& span) {
        return address_space().map().at(span.first_page).kind();
    }

    TestHeap heap;
    LargeBlocks large{heap.heap, heap.totals};
    bool hit = false;
};

TEST(LargeBlocks, FreedBlockServesTheSameSizeFromTheCache) {
    Blocks blocks;
    Span* const first = blocks.allocate(128 * kib);
    ASSERT_NE(first, nullptr);
    EXPECT_FALSE(blocks.hit);
    EXPECT_EQ(first->bytes(), 128 * kib);
    EXPECT_EQ(Blocks::kind_of(*first), PageKind::large_in_use);
    blocks.free(first);
    EXPECT_EQ(Blocks::kind_of(*first), PageKind::large_cached);
    EXPECT_EQ(blocks.cached(), 128 * kib);
    EXPECT_EQ(blocks.allocate(128 * kib), first);
    EXPECT_TRUE(blocks.hit);
    EXPECT_FALSE(first->clean);
    EXPECT_EQ(Blocks::kind_of(*first), PageKind::large_in_use);
    EXPECT_EQ(blocks.cached(), 0U);
}

TEST(LargeBlocks, SlightlyDifferentSizeOfTheSameClassHitsTheCache) {
    Blocks blocks;
    Span* const span = blocks.allocate(1000 * kib);
    blocks.free(span);
    EXPECT_EQ(blocks.allocate(980 * kib), span);
    EXPECT_TRUE(blocks.hit);
}

TEST(LargeBlocks, SlightlyDifferentSizesAreServedWithoutGrowth) {
    for (const std::size_t bytes : {200 * kib, 3 * mib, 100 * mib}) {
        Blocks blocks;
        blocks.free(blocks.allocate(bytes + bytes / 10));
        const std::size_t capacity = blocks.heap.capacity();
        for (const std::size_t less : {bytes / 20, bytes / 50, bytes / 10, std::size_t{0}}) {
            blocks.free(blocks.allocate(bytes + bytes / 10 - less));
        }
        EXPECT_EQ(blocks.heap.capacity(), capacity) << bytes;
    }
}

TEST(LargeBlocks, RepeatedSizesCostNoSystemCall) {
    Blocks blocks;
    const auto round = [&] {
        std::vector<Span*> spans;
        for (std::size_t bytes = 128 * kib; bytes <= 64 * mib; bytes *= 2) {
            spans.push_back(blocks.allocate(bytes));
        }
        for (Span* const span : spans) blocks.free(span);
    };
    round();
    round();
    for (const SystemCall call : {SystemCall::commit_pages, SystemCall::commit_records,
                                  SystemCall::decommit_pages, SystemCall::decommit_map}) {
        const Failing counting(call, 0, 0);
        for (int i = 0; i < 10; ++i) round();
        EXPECT_EQ(Failing::seen(), 0U);
    }
}

TEST(LargeBlocks, CacheIsEmptiedBeforeTheHeapGrows) {
    Blocks blocks;
    std::vector<Span*> spans;
    for (int i = 0; i < 4; ++i) spans.push_back(blocks.allocate(256 * kib));
    for (Span* const span : spans) blocks.free(span);
    EXPECT_EQ(blocks.cached(), 1 * mib);
    EXPECT_NE(blocks.allocate(1 * mib), nullptr) << "four neighbours, joined";
    EXPECT_EQ(blocks.cached(), 0U);
    EXPECT_EQ(blocks.heap.capacity(), 256U);
}

TEST(LargeBlocks, AlignedBlocksAreAlignedWithAnyCacheContent) {
    Blocks blocks;
    blocks.allocate(68 * kib);
    blocks.free(blocks.allocate(128 * kib));
    ASSERT_EQ(blocks.cached(), 128 * kib) << "this block is not aligned and never taken below";
    for (std::size_t alignment = 8 * kib; alignment <= 16 * mib; alignment *= 4) {
        Span* const span = blocks.allocate(128 * kib, alignment);
        ASSERT_NE(span, nullptr);
        const auto address = reinterpret_cast<std::uintptr_t>(blocks.heap.address_of(*span));
        EXPECT_EQ(address % alignment, 0U) << alignment;
    }
}

TEST(LargeBlocks, OneByteWithLargeAlignmentTakesOnePage) {
    Blocks blocks;
    Span* const span = blocks.allocate(1, 4 * kib);
    EXPECT_EQ(span->pages, 1U);
    blocks.free(span);
    EXPECT_EQ(blocks.allocate(1, 4 * kib), span);
}

TEST(LargeBlocks, TightBlocksAreNotRoundedAndReturnToTheHeap) {
    Blocks blocks(limited_options(129));
    constexpr std::size_t bytes = 129 * page_bytes;
    EXPECT_EQ(blocks.allocate(bytes), nullptr) << "rounded up, it exceeds the limit";
    EXPECT_STREQ(blocks.heap.path.refusal.limit, "max_capacity");
    Span* const span = blocks.allocate_tightly(bytes);
    ASSERT_NE(span, nullptr);
    EXPECT_EQ(span->pages, 129U);
    blocks.free(span);
    EXPECT_EQ(blocks.cached(), 0U);
    EXPECT_EQ(blocks.heap.free_pages(), 129U);
}

TEST(LargeBlocks, CacheAndFreePagesTogetherStayWithinRetention) {
    HeapOptions options = plain_options();
    options.retain.bytes = 1 * mib;
    Blocks blocks(options);
    std::vector<Span*> spans;
    for (int i = 0; i < 6; ++i) {
        spans.push_back(blocks.allocate(256 * kib));
        spans.push_back(blocks.allocate(320 * kib));
    }
    for (Span* const span : spans) {
        blocks.free(span);
        EXPECT_LE(blocks.cached() + blocks.heap.free_pages() * page_bytes, 1 * mib);
    }
    EXPECT_GE(blocks.cached(), 512 * kib);
    EXPECT_EQ(blocks.cached() / page_bytes + blocks.heap.free_pages(), blocks.heap.capacity());
}

TEST(LargeBlocks, NothingIsKeptWithRetentionOfZeroBytes) {
    HeapOptions options = plain_options();
    options.retain.bytes = 0;
    Blocks blocks(options);
    blocks.free(blocks.allocate(5 * mib));
    EXPECT_EQ(blocks.cached(), 0U);
    EXPECT_EQ(blocks.heap.capacity(), 0U);
}

TEST(LargeBlocks, EmptyingTheCacheMovesAllOfItToTheHeap) {
    Blocks blocks;
    std::vector<Span*> spans;
    for (const std::size_t bytes : {128 * kib, 256 * kib, 5 * mib})
        spans.push_back(blocks.allocate(bytes));
    for (Span* const span : spans) blocks.free(span);
    const std::size_t cached = blocks.cached();
    EXPECT_EQ(blocks.large.empty_cache(blocks.heap.path), cached);
    EXPECT_EQ(blocks.cached(), 0U);
    EXPECT_EQ(blocks.heap.free_pages() * page_bytes, cached);
    EXPECT_EQ(blocks.heap.trim() * page_bytes, cached);
    EXPECT_EQ(blocks.heap.capacity(), 0U);
}

TEST(LargeBlocks, UnneededBlocksWereCachedForAWholePeriod) {
    Blocks blocks;
    Span* const early = blocks.allocate(128 * kib);
    Span* const late = blocks.allocate(256 * kib);
    blocks.free(early);
    blocks.heap.end_period();
    EXPECT_EQ(blocks.large.empty_cache_of_unneeded(blocks.heap.path), 0U)
        << "freed within the period";
    blocks.free(late);
    blocks.heap.end_period();
    EXPECT_EQ(blocks.large.empty_cache_of_unneeded(blocks.heap.path), 128 * kib);
    EXPECT_EQ(blocks.cached(), 256 * kib);
    blocks.heap.end_period();
    EXPECT_EQ(blocks.large.empty_cache_of_unneeded(blocks.heap.path), 256 * kib);
}

TEST(LargeBlocks, CachedBlocksAreReleasedNearALimit) {
    Blocks blocks(limited_options(1000));
    std::vector<Span*> spans;
    for (int i = 0; i < 8; ++i) spans.push_back(blocks.allocate(100 * page_bytes));
    for (std::size_t i = 0; i < 8; i += 2) blocks.free(spans[i]);
    EXPECT_NE(blocks.allocate(400 * page_bytes), nullptr);
    EXPECT_LE(blocks.heap.capacity(), 1000U);
}

class LargeBlocksInUse : public ::testing::Test {
protected:
    static void wait_for(const std::atomic<unsigned>& counter, unsigned value) {
        const auto is_reached = [&] { return counter.load(std::memory_order_acquire) >= value; };
        // Mostly without a system call, so that the threads meet.
        for (unsigned spins = 0; spins < 1000; ++spins) {
            if (is_reached()) return;
        }
        testing::wait_until("the other thread has counted", is_reached);
    }
    static void pause(unsigned round) {
        for (std::atomic<unsigned> step = 0; step < round % 64; ++step) {
        }
    }
    bool end_use() { return blocks_.large.end_use(block_, entry_, 0, SIZE_MAX); }
    /// In each round, calls `here` on this thread and `end_use` on another one at about the same
    /// time, then `after` with the result of `end_use`.
    template <class Before, class Here, class After>
    void race(unsigned rounds, Before before, Here here, After after) {
        std::atomic<unsigned> begun = 0;
        std::atomic<unsigned> done = 0;
        bool ended = false;
        std::thread other([&] {
            for (unsigned round = 1; round <= rounds; ++round) {
                wait_for(begun, round);
                ended = end_use();
                done.store(round, std::memory_order_release);
            }
        });
        for (unsigned round = 1; round <= rounds; ++round) {
            before();
            begun.store(round, std::memory_order_release);
            pause(round);  // the other thread sees the store after a varying delay
            here();
            wait_for(done, round);
            after(ended);
        }
        other.join();
    }

    Blocks blocks_;
    Span& span_ = *blocks_.allocate(128 * kib);
    Span& elsewhere_ = *blocks_.allocate(128 * kib);
    const void* const block_ = blocks_.heap.address_of(span_);
    const PageEntry entry_ = address_space().map().at(block_);
};

TEST_F(LargeBlocksInUse, EndUseSucceedsOnceAndOnlyAtTheBeginning) {
    const auto end_use = [&](const void* p, std::size_t bytes, std::size_t max_requested) {
        return blocks_.large.end_use(p, entry_, bytes, max_requested);
    };
    span_.requested_bytes = 100 * kib;
    EXPECT_FALSE(end_use(static_cast<const char*>(block_) + 64, 100 * kib, SIZE_MAX));
    EXPECT_FALSE(end_use(block_, 129 * kib, SIZE_MAX));
    EXPECT_FALSE(end_use(block_, 100 * kib, 100 * kib - 1));
    EXPECT_TRUE(end_use(block_, 100 * kib, 100 * kib));
    EXPECT_FALSE(end_use(block_, 100 * kib, SIZE_MAX));
}

TEST_F(LargeBlocksInUse, ConcurrentFreesEndAUseExactlyOnce) {
    bool ended_here = false;
    race(
        100'000, [&] { span_.requested_bytes.store(1, std::memory_order_release); },
        [&] { ended_here = end_use(); }, [&](bool ended) { ASSERT_NE(ended, ended_here); });
}

// As if one thread reallocates a block, whose pages move, while another frees it. The first read of
// the record races with a write, which ThreadSanitizer reports correctly as a data race of the
// misusing program.
TEST_F(LargeBlocksInUse, EndUseDetectsABlockThatMovedMeanwhile) {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP();
#endif
    const PageNumber first_page = span_.first_page;
    race(
        400'000,
        [&] {
            span_.first_page = first_page;
            span_.requested_bytes.store(1, std::memory_order_release);
        },
        [&] {
            span_.first_page = elsewhere_.first_page;
            span_.requested_bytes.store(2, std::memory_order_release);
        },
        [&](bool ended) {
            // 0 means that the later use was ended.
            ASSERT_FALSE(ended && span_.requested_bytes.load() == 0);
        });
    span_.first_page = first_page;
}

}  // namespace
}  // namespace tensorpool::pages
