#include "pages/large_blocks.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <deque>
#include <thread>
#include <vector>

#include "pages/random.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::uint32_t all = UINT32_MAX;

/// A cache and spans of given sizes and periods.
class LargeCacheTest : public ::testing::Test {
protected:
    Span& span(PageCount pages, std::uint32_t period = 0) {
        Span& one = spans_.emplace_back();
        one.pages = round_large(pages);
        one.period = period;
        return one;
    }
    /// Keeps as many spans as there is room for.
    unsigned fill(PageCount pages) {
        unsigned kept = 0;
        while (cache.keep(span(pages))) ++kept;
        return kept;
    }
    std::vector<Span*> emptied(std::uint32_t period) {
        std::vector<Span*> out;
        cache.empty(period, [&](Span& one) { out.push_back(&one); });
        return out;
    }

    statistics::PoolTotals totals{};
    LargeCache cache{totals};

private:
    std::deque<Span> spans_;
};

TEST_F(LargeCacheTest, EmptyCacheReturnsNull) {
    EXPECT_EQ(cache.take(32), nullptr);
    EXPECT_TRUE(emptied(all).empty());
    EXPECT_EQ(totals.large_cached_bytes, 0U);
}

TEST_F(LargeCacheTest, ReturnsEachSpanOnceAndOnlyForItsSize) {
    Span& kept = span(40);
    ASSERT_TRUE(cache.keep(kept));
    EXPECT_EQ(totals.large_cached_bytes, kept.bytes());
    EXPECT_EQ(cache.take(round_large(41 + kept.pages / 8)), nullptr);
    EXPECT_EQ(cache.take(round_large(35)), nullptr);
    EXPECT_EQ(cache.take(kept.pages), &kept);
    EXPECT_EQ(cache.take(kept.pages), nullptr);
    EXPECT_EQ(totals.large_cached_bytes, 0U);
}

TEST_F(LargeCacheTest, HasRoomForEverySizeFromOnePageToTheLargest) {
    for (unsigned large_class = 1; large_class < large_class_count; ++large_class) {
        const PageCount pages = pages_of_large_class(large_class);
        Span& kept = span(pages);
        ASSERT_TRUE(cache.keep(kept)) << pages;
        ASSERT_EQ(cache.take(pages), &kept) << pages;
    }
}

TEST_F(LargeCacheTest, RejectsMoreOfASizeThanItHasRoomFor) {
    const unsigned room = fill(32);
    EXPECT_GE(room, 2U);
    EXPECT_EQ(totals.large_cached_bytes, room * 32 * page_bytes);
    EXPECT_TRUE(cache.keep(span(64))) << "other sizes have room of their own";
    ASSERT_NE(cache.take(32), nullptr);
    EXPECT_TRUE(cache.keep(span(32)));
    EXPECT_FALSE(cache.keep(span(32)));
}

TEST_F(LargeCacheTest, EmptyVisitsEverySpanOnce) {
    std::vector<Span*> kept;
    for (unsigned large_class = 1; large_class < large_class_count; ++large_class) {
        for (int i = 0; i < 2; ++i) {
            kept.push_back(&span(pages_of_large_class(large_class)));
            ASSERT_TRUE(cache.keep(*kept.back()));
        }
    }
    EXPECT_GT(totals.large_cached_bytes, 0U);
    std::vector<Span*> out = emptied(all);
    std::sort(out.begin(), out.end());
    std::sort(kept.begin(), kept.end());
    EXPECT_EQ(out, kept);
    EXPECT_EQ(totals.large_cached_bytes, 0U);
    EXPECT_TRUE(emptied(all).empty());
}

TEST_F(LargeCacheTest, EmptyByPeriodKeepsYoungerSpans) {
    Span& old = span(100, 3);
    Span& young = span(100, 4);
    Span& younger = span(300, 5);
    for (Span* const one : {&young, &old, &younger}) ASSERT_TRUE(cache.keep(*one));
    EXPECT_EQ(emptied(3), std::vector<Span*>());
    EXPECT_EQ(emptied(4), std::vector<Span*>{&old});
    EXPECT_EQ(totals.large_cached_bytes, young.bytes() + younger.bytes());
    EXPECT_EQ(cache.take(young.pages), &young) << "still there for a request";
    EXPECT_EQ(emptied(6), std::vector<Span*>{&younger}) << "still there for a later empty";
    EXPECT_EQ(totals.large_cached_bytes, 0U);
}

TEST_F(LargeCacheTest, SpansKeptAfterEmptyAreFoundByTheNext) {
    for (int round = 0; round < 3; ++round) {
        Span& kept = span(1000);
        ASSERT_TRUE(cache.keep(kept));
        EXPECT_EQ(emptied(all), std::vector<Span*>{&kept});
    }
}

/// Threads take spans from a cache, hold them, and put them back. Each span must have one holder at
/// a time.
class Contest {
public:
    Contest(LargeCache& cache, unsigned spans) : cache_(cache), holders_(spans) {
        for (unsigned i = 0; i < spans; ++i) {
            Span& span = spans_.emplace_back();
            span.first_page = i;
            span.pages = sizes[i % 3];
            total_bytes += span.bytes();
            if (!cache.keep(span)) spare_.push_back(&span);
        }
    }

    void work(unsigned self, unsigned steps) {
        testing::Random random(self);
        std::vector<Span*> held;
        if (self == 1) {
            held = spare_;
            for (Span* const span : held) hold(*span, self);
        }
        for (unsigned step = 0; step < steps; ++step) {
            if (Span* const span = cache_.take(sizes[random.below(3)]))
                held.push_back(hold(*span, self));
            if (!held.empty() && random.below(3) != 0) {
                std::swap(held[random.below(held.size())], held.back());
                if (put_back(*held.back(), self)) held.pop_back();
            }
            if (random.one_in(50)) {
                cache_.empty(random.below(2),
                             [&](Span& span) { held.push_back(hold(span, self)); });
            }
        }
        for (Span* const span : held) {
            if (!put_back(*span, self)) holders_[span->first_page] = 0;
        }
    }

    std::size_t total_bytes = 0;

private:
    static constexpr PageCount sizes[3] = {32, 40, 1024};

    Span* hold(Span& span, unsigned self) {
        if (holders_[span.first_page].exchange(self, std::memory_order_relaxed) != 0) {
            ADD_FAILURE() << "two threads hold span " << span.first_page;
        }
        span.home = static_cast<std::uint16_t>(self);  // not atomic: only the cache orders it
        span.period = self % 2;
        return &span;
    }
    bool put_back(Span& span, unsigned self) {
        if (span.home != self) ADD_FAILURE() << "another thread wrote to the record";
        holders_[span.first_page].store(0, std::memory_order_relaxed);
        if (cache_.keep(span)) return true;
        holders_[span.first_page].store(self, std::memory_order_relaxed);
        return false;
    }

    LargeCache& cache_;
    std::deque<Span> spans_;
    std::vector<std::atomic<unsigned>> holders_;
    std::vector<Span*> spare_;
};

TEST_F(LargeCacheTest, SpanHasOneHolderAndTheCountIsNeverNegative) {
    Contest contest(cache, 15);
    std::atomic<bool> stop = false;
    std::vector<std::thread> workers;
    for (unsigned self = 1; self <= 3; ++self) {
        workers.emplace_back([&contest, self] { contest.work(self, 20'000); });
    }
    std::thread reader([&] {
        // A span that is being put in may be counted although its way turns out to be taken.
        const std::size_t max_cached = contest.total_bytes + 3 * 1024 * page_bytes;
        while (!stop) {
            if (totals.large_cached_bytes > max_cached) ADD_FAILURE() << totals.large_cached_bytes;
        }
    });
    for (std::thread& worker : workers) worker.join();
    stop = true;
    reader.join();

    std::size_t left = 0;
    cache.empty(all, [&](Span& one) { left += one.bytes(); });
    EXPECT_LE(left, contest.total_bytes);
    EXPECT_EQ(totals.large_cached_bytes, 0U);
}

}  // namespace
}  // namespace tensorpool::pages
