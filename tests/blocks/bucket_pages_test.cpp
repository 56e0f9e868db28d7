// Which pages of a bucket's spans are resident.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include <cstring>
#include <vector>

#include "base/alignment.hpp"
#include "blocks/magazine_pair.hpp"
#include "blocks/pool_parts.hpp"
#include "platform/platform.hpp"
#include "support/child_process.hpp"

namespace tensorpool::blocks {
namespace {

using testing::holds_in_child;
using testing::PoolParts;

std::size_t pages_in_memory(void* begin, std::size_t pages) {
    std::vector<unsigned char> states(pages);
    if (mincore(begin, pages * pages::page_bytes, states.data()) != 0) return SIZE_MAX;
    std::size_t count = 0;
    for (const unsigned char state : states) count += state & 1U;
    return count;
}

/// The page where the span of a bucket's first block begins.
void* span_begin(PoolParts& pool, void* block) {
    return pool.heap.space().address_of(pool.heap.space().map().at(block).span()->first_page);
}

TEST(BucketPages, UnwrittenBlocksTakeNoMemory) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        PoolParts pool;
        const BucketLayout& layout = bucket_layouts[bucket];
        std::vector<void*> blocks = pool.take(bucket, layout.blocks);
        void* const begin = span_begin(pool, blocks.front());
        pool.bring_home(bucket, {blocks.front()});
        EXPECT_EQ(pages_in_memory(begin, layout.pages), 0U) << bucket;
    }
}

TEST(BucketPages, OnlyPagesOfWrittenBlocksAreResident) {
    EXPECT_TRUE(holds_in_child([] {
        prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
        PoolParts pool;
        constexpr unsigned bucket_1k = 4;
        const std::vector<void*> blocks = pool.take(bucket_1k, 8);
        for (void* const block : blocks) std::memset(block, 1, 1024);
        void* const begin = span_begin(pool, blocks.front());
        return pages_in_memory(begin, bucket_layouts[bucket_1k].pages) ==
               base::ceil_divide(blocks.size() * 1024, platform::page_bytes());
    }));
}

TEST(BucketPages, TakingAndReturningDoNotWriteIntoBlocks) {
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        PoolParts pool;
        const std::size_t bytes = detail::bucket_bytes(bucket);
        const std::vector<void*> blocks = pool.take(bucket, 3);
        for (void* const block : blocks) std::memset(block, 0x5A, bytes);
        pool.bring_home(bucket, {blocks[0], blocks[2]});
        pool.take(bucket, 1);
        const std::vector<char> expected(bytes, 0x5A);
        for (void* const block : blocks) {
            EXPECT_EQ(std::memcmp(block, expected.data(), bytes), 0) << bucket;
        }
    }
}

}  // namespace
}  // namespace tensorpool::blocks
