// include/tensorpool/detail/buckets.hpp

#include <gtest/gtest.h>
#include <tensorpool/detail/buckets.hpp>

#include <cstddef>
#include <cstdint>

namespace tensorpool::detail {
namespace {

unsigned smallest_bucket_that_holds(std::size_t bytes) {
    unsigned bucket = 0;
    while (bucket_bytes(bucket) < bytes) ++bucket;
    return bucket;
}

TEST(Buckets, SizesDoubleFrom64BytesTo64Kib) {
    ASSERT_EQ(bucket_count, 11U);
    std::size_t bytes = 64;
    for (unsigned bucket = 0; bucket < bucket_count; ++bucket, bytes *= 2) {
        EXPECT_EQ(bucket_bytes(bucket), bytes);
    }
    EXPECT_EQ(bytes, 2 * 65'536U);
}

TEST(Buckets, EverySizeMapsToTheSmallestBucketThatHoldsIt) {
    for (std::size_t bytes = 1; bytes <= largest_block_bytes; ++bytes) {
        ASSERT_EQ(bucket_of(bytes), smallest_bucket_that_holds(bytes)) << bytes;
    }
}

TEST(Buckets, NoBucketServesZeroBytes) {
    EXPECT_GE(bucket_of(0), bucket_count);
}

TEST(Buckets, NoBucketServesMoreThanTheLargestBlock) {
    for (std::size_t bytes = largest_block_bytes + 1; bytes < 4 * largest_block_bytes; ++bytes) {
        ASSERT_GE(bucket_of(bytes), bucket_count) << bytes;
    }
    for (std::size_t bytes = 4 * largest_block_bytes; bytes != 0; bytes *= 2) {
        EXPECT_GE(bucket_of(bytes - 1), bucket_count) << bytes;
        EXPECT_GE(bucket_of(bytes), bucket_count) << bytes;
        EXPECT_GE(bucket_of(bytes + 1), bucket_count) << bytes;
    }
    for (std::size_t below = 0; below < 200; ++below) {
        EXPECT_GE(bucket_of(SIZE_MAX - below), bucket_count) << below;
    }
}

}  // namespace
}  // namespace tensorpool::detail
