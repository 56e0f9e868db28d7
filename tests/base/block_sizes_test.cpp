#include "base/block_sizes.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace tensorpool::base {
namespace {

std::size_t bytes_for(std::size_t bytes) {
    const BlockSize size = finest_size(bytes);
    return block_bytes(size.series, size.bucket);
}

std::vector<std::size_t> all_sizes() {
    std::vector<std::size_t> sizes;
    for (std::size_t bytes = 1; bytes <= detail::largest_block_bytes;) {
        sizes.push_back(bytes_for(bytes));
        bytes = sizes.back() + 1;
    }
    return sizes;
}

TEST(BlockSizes, FourSizesPerPowerOfTwo) {
    const std::vector<std::size_t> sizes = all_sizes();
    ASSERT_EQ(sizes.size(), series_count * detail::bucket_count);
    const std::vector<std::size_t> first(sizes.begin(), sizes.begin() + 12);
    EXPECT_EQ(first,
              (std::vector<std::size_t>{16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256}));
    const std::vector<std::size_t> last(sizes.end() - 4, sizes.end());
    EXPECT_EQ(last, (std::vector<std::size_t>{40960, 49152, 57344, 65536}));
}

TEST(BlockSizes, WasteAtMostOneFifthAbove64Bytes) {
    for (std::size_t bytes = 65; bytes <= detail::largest_block_bytes; ++bytes) {
        EXPECT_GE(bytes_for(bytes), bytes);
        EXPECT_LE((bytes_for(bytes) - bytes) * 5, bytes_for(bytes)) << bytes;
    }
}

TEST(BlockSizes, PowersOfTwoAreTheBuckets) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const BlockSize size = finest_size(detail::bucket_bytes(bucket));
        EXPECT_EQ(size.series, 0U);
        EXPECT_EQ(size.bucket, bucket);
    }
}

TEST(BlockSizes, RowIsBucketThatServesSameRequests) {
    for (std::size_t bytes = 1; bytes <= detail::largest_block_bytes; ++bytes) {
        const BlockSize size = finest_size(bytes);
        EXPECT_EQ(row_of(size.series, size.bucket), detail::bucket_of(bytes)) << bytes;
    }
}

}  // namespace
}  // namespace tensorpool::base
