#include "pages/large_sizes.hpp"

#include <gtest/gtest.h>

#include <set>

namespace tensorpool::pages {
namespace {

/// All small page counts, and those around every power of two and every step up to the maximum.
std::set<PageCount> telling_page_counts() {
    std::set<PageCount> counts;
    for (PageCount pages = 1; pages <= 5000; ++pages) counts.insert(pages);
    for (PageCount power = 1; power <= max_large_pages; power *= 2) {
        for (PageCount part = 0; part < 32; ++part) {
            const PageCount at = power + power / 32 * part;
            for (const PageCount pages : {at - 1, at, at + 1}) {
                if (pages >= 1 && pages <= max_large_pages) counts.insert(pages);
            }
        }
    }
    return counts;
}

TEST(LargeSizes, RoundingWastesAtMostAnEighthUpToTheLargest) {
    for (const PageCount pages : telling_page_counts()) {
        const std::uint64_t rounded = round_large(pages);
        ASSERT_GE(rounded, pages);
        ASSERT_LE((rounded - pages) * 8, pages) << pages;
        ASSERT_LE(rounded, max_large_pages) << pages;
    }
}

TEST(LargeSizes, RoundingIsIdempotentAndMonotonic) {
    PageCount last = 0;
    for (const PageCount pages : telling_page_counts()) {
        const PageCount rounded = round_large(pages);
        ASSERT_EQ(round_large(rounded), rounded) << pages;
        ASSERT_GE(rounded, last) << pages;
        last = rounded;
    }
}

TEST(LargeSizes, ClassesNumberTheSizesInOrderWithoutGaps) {
    unsigned last_class = 0;
    PageCount last = 0;
    for (const PageCount pages : telling_page_counts()) {
        const PageCount rounded = round_large(pages);
        const unsigned size_class = large_class_of(rounded);
        ASSERT_EQ(size_class, rounded == last ? last_class : last_class + 1) << pages;
        last = rounded;
        last_class = size_class;
    }
    EXPECT_EQ(last_class + 1, large_class_count);
}

TEST(LargeSizes, EveryClassMapsToItsSize) {
    for (unsigned large_class = 1; large_class < large_class_count; ++large_class) {
        const PageCount pages = pages_of_large_class(large_class);
        ASSERT_EQ(round_large(pages), pages) << large_class;
        ASSERT_EQ(large_class_of(pages), large_class);
    }
}

TEST(LargeSizes, RoundingAbove1MibWastesAtMostAThirtySecond) {
    for (const PageCount pages : telling_page_counts()) {
        if (pages <= finer_above_pages) continue;
        ASSERT_LE((std::uint64_t{round_large(pages)} - pages) * 32, pages) << pages;
    }
}

TEST(LargeSizes, UpTo64KiBEverySizeHasAClassOfItsOwn) {
    for (PageCount pages = 1; pages <= 16; ++pages) {
        EXPECT_EQ(round_large(pages), pages);
        EXPECT_EQ(large_class_of(pages), pages);
    }
}

TEST(LargeSizes, SlightlyDifferentSizesShareAClass) {
    EXPECT_EQ(round_large(250), round_large(241));
    EXPECT_EQ(round_large(10'000), round_large(10'200));
}

}  // namespace
}  // namespace tensorpool::pages
