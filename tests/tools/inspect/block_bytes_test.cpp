#include "formats/trace/history.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::command::trace {
namespace {

constexpr std::size_t kib = 1024;

TEST(BlockBytes, MatchThePool) {
    MemoryPool pool{PoolOptions{}};
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{64}, std::size_t{65}, std::size_t{1000}, 4 * kib,
          64 * kib - 1, 64 * kib, 64 * kib + 1, 65 * kib, 72 * kib, 100 * kib, 130 * kib, 515 * kib,
          1024 * kib, 1024 * kib + 1, 3000 * kib, 7777 * kib, 40'000 * kib}) {
        void* const block = pool.allocate(bytes);
        EXPECT_EQ(pool_block_bytes(bytes, 6), pool.usable_size(block)) << bytes;
        pool.deallocate(block, bytes);
    }
}

TEST(BlockBytes, FollowTheAlignment) {
    MemoryPool pool{PoolOptions{}};
    for (const unsigned alignment_log2 : {0U, 3U, 7U, 9U, 11U, 12U, 16U, 21U}) {
        for (const std::size_t bytes : {std::size_t{10}, std::size_t{2000}, 3 * kib, 70 * kib}) {
            const std::size_t alignment = std::size_t{1} << alignment_log2;
            void* const block = pool.allocate(bytes, alignment);
            EXPECT_EQ(pool_block_bytes(bytes, alignment_log2), pool.usable_size(block))
                << bytes << " at " << alignment;
            pool.deallocate(block, bytes, alignment);
        }
    }
}

TEST(BlockBytes, OfMallocAreFinerSizes) {
    for (const auto& [requested, got] : {std::pair{1, 16},
                                         {16, 16},
                                         {17, 32},
                                         {40, 48},
                                         {49, 64},
                                         {65, 80},
                                         {112, 112},
                                         {113, 128},
                                         {129, 160},
                                         {1000, 1024},
                                         {57'345, 65'536},
                                         {65'536, 65'536}}) {
        EXPECT_EQ(pool_block_bytes(static_cast<std::uint64_t>(requested), 4),
                  static_cast<std::uint64_t>(got))
            << requested;
    }
    EXPECT_EQ(pool_block_bytes(64 * kib + 1, 4), 72 * kib);
}

TEST(BlockBytes, OfHugeRequestsAreTheRequestedBytes) {
    constexpr std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
    EXPECT_EQ(pool_block_bytes(max, 6), max);
    EXPECT_EQ(pool_block_bytes(100, 255), 100U);
}

}  // namespace
}  // namespace tensorpool::command::trace
