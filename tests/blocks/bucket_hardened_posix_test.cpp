#include <gtest/gtest.h>
#include <unistd.h>

#include <vector>

#include "blocks/bucket_shard.hpp"
#include "blocks/pool_parts.hpp"
#include "platform/platform.hpp"

namespace tensorpool::blocks {
namespace {

using testing::PoolParts;

/// Returns whether the process may read the byte. The system reads it, and refuses to if not.
bool is_readable(const char* byte) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    const bool was_read = write(ends[1], byte, 1) == 1;
    close(ends[0]);
    close(ends[1]);
    return was_read;
}

TEST(HardenedBucketGuards, SpanEndsWithAnInaccessiblePageUntilItIsFree) {
    if (platform::page_bytes() != pages::page_bytes) GTEST_SKIP() << "spans may have no guard";
    for (const unsigned bucket : {0U, 4U}) {
        PoolParts pool{{.states = States::hardened}};
        const std::vector<void*> blocks = pool.take(bucket, 1);
        const pages::Span& span = *pages::address_space().map().at(blocks[0]).span();
        const char* const end = pages::address_space().address_of(span.first_page) + span.bytes();
        EXPECT_TRUE(is_readable(end - pages::page_bytes - 1)) << bucket;
        EXPECT_FALSE(is_readable(end - pages::page_bytes)) << bucket;
        EXPECT_FALSE(is_readable(end - 1)) << bucket;
        pool.bring_home(bucket, blocks);
        EXPECT_TRUE(is_readable(end - 1)) << bucket;
    }
}

}  // namespace
}  // namespace tensorpool::blocks
