#include "pages/page_map.hpp"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "pages/span.hpp"

namespace tensorpool::pages {
namespace {

constexpr std::uintptr_t base = std::uintptr_t{1} << 40;
constexpr PageCount page_count = 4 * granule_pages;
constexpr unsigned pool_number = 9;

/// A map of pages that are never accessed.
class PageMapTest : public ::testing::Test {
protected:
    PageMapTest() {
        map.set_up(base, entries.data(), granules.data());
        map.grow(page_count);
    }

    void put_large(Span& span, PageNumber first, PageCount pages) {
        span.first_page = first;
        span.pages = pages;
        const PageEntry entry(&span, pool_number, PageKind::large_in_use);
        map.set_ends(span, entry);
        map.set_granules(span, entry);
    }
    const Span* holder_of(PageNumber page) const {
        return map.find(map.address_of(page), pool_number).span();
    }

    std::vector<PageMap::Word> entries = std::vector<PageMap::Word>(page_count);
    std::vector<PageMap::Word> granules = std::vector<PageMap::Word>(page_count / granule_pages);
    PageMap map;
    Span one;
    Span other;
};

TEST(PageEntry, HoldsSpanPoolAndKindInOneWord) {
    const Span span;
    const PageEntry entry(&span, 65'533, PageKind::extent_cold);
    EXPECT_EQ(entry.span(), &span);
    EXPECT_EQ(entry.pool_number(), 65'533U);
    EXPECT_EQ(entry.kind(), PageKind::extent_cold);
    EXPECT_FALSE(entry.is_bucket());
    EXPECT_FALSE(entry.empty());
    EXPECT_EQ(PageEntry(entry.word()).span(), &span);
}

TEST(PageEntry, DistinguishesBucketsWholePagesAndEmptyEntries) {
    const Span span;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const PageEntry entry(&span, 0, kind_of_bucket(bucket));
        EXPECT_TRUE(entry.is_bucket());
        EXPECT_EQ(entry.bucket(), bucket);
    }
    for (const PageKind kind : {PageKind::large_in_use, PageKind::large_cached,
                                PageKind::extent_hot, PageKind::extent_cold}) {
        EXPECT_FALSE(PageEntry(&span, 0, kind).is_bucket());
    }
    EXPECT_FALSE(PageEntry().is_bucket());
    EXPECT_TRUE(PageEntry().empty());
}

TEST(PageMap, IsEmptyBeforeSetUp) {
    const PageMap map;
    EXPECT_TRUE(map.at(&map).empty());
    EXPECT_TRUE(map.at(nullptr).empty());
    EXPECT_TRUE(map.find(&map, pool_number).empty());
    EXPECT_TRUE(map.find(nullptr, pool_number).empty());
}

TEST_F(PageMapTest, ClearedGranulesHaveNoWords) {
    put_large(one, 5, 2 * granule_pages);
    put_large(other, 3 * granule_pages, granule_pages);
    map.clear({granule_pages, 2 * granule_pages});
    EXPECT_EQ(map.at(5).span(), &one);
    EXPECT_TRUE(map.at(one.end_page() - 1).empty());
    EXPECT_EQ(granules[1], 0U);
    EXPECT_EQ(granules[2], 0U);
    EXPECT_EQ(holder_of(3 * granule_pages + 7), &other);
}

// The record of another pool's span may be freed at any time.
TEST_F(PageMapTest, SpanOfAnotherPoolIsNotRead) {
    Span span;
    put_large(span, 10, 2 * granule_pages);
    for (const PageNumber page : {10U, 11U, granule_pages, granule_pages + 5}) {
        EXPECT_TRUE(map.find(map.address_of(page), pool_number + 1).empty()) << page;
    }
}

TEST_F(PageMapTest, IsEmptyOutsideOfItsRange) {
    for (Span* const span : {&one, &other}) {
        put_large(*span, span == &one ? 0 : page_count - 1, 1);
    }
    constexpr std::uintptr_t end = base + std::uintptr_t{page_count} * page_bytes;
    for (const std::uintptr_t address : {std::uintptr_t{0}, base - 1, end, ~std::uintptr_t{0}}) {
        EXPECT_TRUE(map.at(reinterpret_cast<const void*>(address)).empty()) << address;
        EXPECT_TRUE(map.find(reinterpret_cast<const void*>(address), pool_number).empty())
            << address;
    }
}

TEST_F(PageMapTest, PageNumbersAndAddressesAreInverse) {
    for (const PageNumber page : {PageNumber{0}, PageNumber{1}, page_count - 1}) {
        EXPECT_EQ(map.page_of(map.address_of(page)), page);
        EXPECT_EQ(map.page_of(map.address_of(page) + page_bytes - 1), page);
    }
}

TEST_F(PageMapTest, SpanIsFoundFromEveryByteOfIt) {
    put_large(one, 3, 2 * granule_pages + 100);
    for (PageNumber page = one.first_page; page < one.end_page(); ++page) {
        ASSERT_EQ(holder_of(page), &one) << page;
        ASSERT_EQ(map.find(map.address_of(page) + page_bytes - 1, pool_number).span(), &one)
            << page;
    }
    EXPECT_EQ(holder_of(2), nullptr);
    EXPECT_EQ(holder_of(one.end_page()), nullptr);
}

TEST_F(PageMapTest, NeighboursAreDistinguished) {
    put_large(one, 10, 700);
    put_large(other, one.end_page(), 1000);
    EXPECT_EQ(holder_of(one.end_page() - 1), &one);
    EXPECT_EQ(holder_of(one.end_page() - 2), &one);
    EXPECT_EQ(holder_of(other.first_page), &other);
    EXPECT_EQ(holder_of(other.first_page + 1), &other);
    EXPECT_EQ(holder_of(3 * granule_pages + 50), &other);
}

TEST_F(PageMapTest, NothingIsFoundBehindASpanInTheSameGranule) {
    put_large(one, 10, 5);
    EXPECT_EQ(holder_of(16), nullptr);
    EXPECT_EQ(holder_of(granule_pages - 1), nullptr);
    EXPECT_EQ(holder_of(9), nullptr);
}

TEST_F(PageMapTest, SpansAtBothEndsOfAGranuleAreFound) {
    put_large(one, granule_pages, granule_pages);
    put_large(other, 2 * granule_pages, 1);
    EXPECT_EQ(holder_of(granule_pages), &one);
    EXPECT_EQ(holder_of(granule_pages + 300), &one);
    EXPECT_EQ(holder_of(2 * granule_pages - 1), &one);
    EXPECT_EQ(holder_of(2 * granule_pages), &other);
    EXPECT_EQ(holder_of(granule_pages - 1), nullptr);
}

TEST_F(PageMapTest, ClearingASpanLeavesNoWord) {
    put_large(one, 5, 1500);
    map.set_ends(one, PageEntry());
    map.set_granules(one, PageEntry());
    const PageEntry bucket(&other, pool_number, kind_of_bucket(3));
    other.first_page = 100;
    other.pages = 16;
    map.set_all({other.first_page, other.pages}, bucket);
    EXPECT_EQ(map.at(PageNumber{107}).word(), bucket.word());
    map.set_all({other.first_page, other.pages}, PageEntry());
    for (const auto& word : entries) ASSERT_EQ(word, 0U);
    for (const auto& word : granules) ASSERT_EQ(word, 0U);
}

TEST_F(PageMapTest, FirstEntryAloneShowsWhetherABlockIsInUse) {
    put_large(one, 5, 20);
    map.set_first(one.first_page, PageEntry(&one, pool_number, PageKind::large_cached));
    EXPECT_EQ(map.at(PageNumber{5}).kind(), PageKind::large_cached);
    EXPECT_EQ(map.at(PageNumber{24}).kind(), PageKind::large_in_use);
    EXPECT_EQ(holder_of(15), &one);
}

// A thread may look up any pointer while another sets the map up. Run it under the thread
// sanitizer.
TEST(PageMapUnderThreads, LookUpsDuringSetUpSeeNothingOrEverything) {
    for (int round = 0; round < 200; ++round) {
        PageMap map;
        std::vector<PageMap::Word> entries(8);
        std::vector<PageMap::Word> granules(1);
        const Span span;
        entries[2] = PageEntry(&span, 1, PageKind::large_in_use).word();
        const auto* const p = reinterpret_cast<const void*>(base + 2 * page_bytes);
        std::thread asker([&] {
            for (int look = 0; look < 20; ++look) {
                const PageEntry entry = map.at(p);
                if (!entry.empty() && entry.span() != &span) ADD_FAILURE() << entry.word();
            }
        });
        map.set_up(base, entries.data(), granules.data());
        map.grow(8);
        asker.join();
        EXPECT_EQ(map.at(p).span(), &span);
    }
}

}  // namespace
}  // namespace tensorpool::pages
