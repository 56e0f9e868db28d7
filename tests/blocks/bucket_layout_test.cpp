#include "blocks/bucket_layout.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace tensorpool::blocks {
namespace {

constexpr std::size_t kib = 1024;

template <class Function>
void for_each_layout(Function function) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        SCOPED_TRACE(bucket);
        function(bucket_layouts[bucket], detail::bucket_bytes(bucket));
    }
}

bool serves(std::size_t span_bytes, std::size_t stride) {
    const std::size_t blocks = span_bytes / stride;
    return span_bytes >= 64 * kib && blocks >= 8 &&
           (span_bytes - blocks * stride) * 50 <= span_bytes;
}

TEST(BucketLayout, SpanIsTheSmallestWithEightBlocksAndAtMostTwoPercentWaste) {
    for_each_layout([](const BucketLayout& layout, std::size_t) {
        const std::size_t span = layout.pages * pages::page_bytes;
        EXPECT_TRUE(serves(span, layout.stride));
        EXPECT_EQ(layout.blocks, span / layout.stride);
        for (std::size_t less = pages::page_bytes; less < span; less += pages::page_bytes) {
            EXPECT_FALSE(serves(less, layout.stride)) << less;
        }
    });
}

TEST(BucketLayout, BlocksBelow4KibAreAdjacentAndAlignedToTheirSize) {
    for_each_layout([](const BucketLayout& layout, std::size_t bytes) {
        if (bytes < 4 * kib) {
            EXPECT_EQ(layout.stride, bytes);
        }
    });
}

TEST(BucketLayout, LargerBlocksOfASpanBeginInDifferentCacheSets) {
    for_each_layout([](const BucketLayout& layout, std::size_t bytes) {
        if (bytes < 4 * kib) return;
        EXPECT_EQ(layout.stride, bytes + 64);
        // In a first-level cache of 64 sets of 64 bytes, neighbours begin in different sets.
        EXPECT_NE(layout.stride / 64 % 64, 0U);
    });
}

TEST(BucketLayout, NoBlockBeginsOnAPageThatIsNotABuckets) {
    const auto* const at_64_kib = reinterpret_cast<const void*>(std::uintptr_t{1} << 16);
    const auto* const at_1_gib = reinterpret_cast<const void*>(std::uintptr_t{1} << 30);
    for (const pages::PageKind kind :
         {pages::PageKind::none, pages::PageKind::large_in_use, pages::PageKind::large_cached,
          pages::PageKind::extent_hot, pages::PageKind::extent_cold}) {
        const pages::PageEntry entry(nullptr, 0, kind);
        EXPECT_FALSE(may_begin_block(at_64_kib, entry)) << static_cast<unsigned>(kind);
        EXPECT_FALSE(may_begin_block(at_1_gib, entry)) << static_cast<unsigned>(kind);
    }
}

TEST(BucketLayout, BlocksMayBeginWhereTheirSizeAllows) {
    const pages::PageEntry entry(nullptr, 0, pages::kind_of_bucket(2));  // 256 B
    EXPECT_TRUE(may_begin_block(reinterpret_cast<const void*>(0x10100), entry));
    EXPECT_FALSE(may_begin_block(reinterpret_cast<const void*>(0x10140), entry));
}

TEST(BucketLayout, EveryBlockIsAlignedToACacheLine) {
    for_each_layout(
        [](const BucketLayout& layout, std::size_t) { EXPECT_EQ(layout.stride % 64, 0U); });
}

TEST(BucketLayout, EveryBlockOfASpanHasABitInItsRecord) {
    for_each_layout([](const BucketLayout& layout, std::size_t) {
        EXPECT_LE(layout.blocks, sizeof(pages::Span::home_bits) * 8);
    });
}

TEST(BucketLayout, FirstRefillIs16KibOfBlocksAndAtLeastOne) {
    for_each_layout([](const BucketLayout& layout, std::size_t bytes) {
        EXPECT_EQ(layout.first_refill, std::clamp<std::size_t>(16 * kib / bytes, 1, 64));
    });
}

TEST(BucketLayout, TwoFullMagazinesOfOneBucketFitTheLimitOfAThread) {
    for_each_layout([](const BucketLayout& layout, std::size_t bytes) {
        EXPECT_LE(layout.max_in_magazine, magazine_room);
        EXPECT_GE(layout.max_in_magazine, layout.first_refill);
        EXPECT_LE(2 * layout.max_in_magazine * bytes, 4096 * kib);
    });
}

TEST(BucketLayout, FirstRefillsOfAllBucketsStayBelow512Kib) {
    std::size_t parked = 0;
    for_each_layout([&](const BucketLayout& layout, std::size_t bytes) {
        parked += layout.first_refill * bytes;
    });
    EXPECT_LT(parked, 512 * kib);
}

}  // namespace
}  // namespace tensorpool::blocks
