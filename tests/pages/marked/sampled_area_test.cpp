#include "pages/marked/sampled_area.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "pages/address_space.hpp"

namespace tensorpool::pages {
namespace {

using base::BlockSize;

constexpr unsigned pool = 78;
constexpr unsigned other_pool = 79;
constexpr BlockSize smallest{0, 0};
constexpr BlockSize of_1_kib{0, 4};
constexpr BlockSize of_4_kib{0, 6};
constexpr BlockSize of_64_kib{0, 10};

class SampledAreaTest : public ::testing::Test {
protected:
    ~SampledAreaTest() override {
        area_.forget_pool(pool);
        area_.forget_pool(other_pool);
    }
    SampledBlock take(BlockSize size, unsigned of_pool = pool) {
        SampledBlock block = area_.take(of_pool, size);
        if (block.pages == nullptr) block = area_.open(of_pool, size);
        EXPECT_NE(block.pages, nullptr);
        return block;
    }

    SampledArea& area_ = sampled_area();
};

TEST_F(SampledAreaTest, BlocksLieBelowAllOthersAndApart) {
    std::set<const char*> addresses;
    for (std::uint8_t bucket = 0; bucket < detail::bucket_count; ++bucket) {
        for (int i = 0; i < 100; ++i) {
            const SampledBlock block = take({0, bucket});
            const std::size_t bytes = std::size_t{64} << bucket;
            EXPECT_EQ(
                reinterpret_cast<std::uintptr_t>(block.address()) % std::min(bytes, page_bytes),
                0U);
            EXPECT_LE(reinterpret_cast<std::uintptr_t>(block.address()) + bytes,
                      address_space().first_unguarded());
            std::memset(block.address(), 1, bytes);
            const SampledBlock found = SampledArea::find(block.address() + bytes - 1);
            EXPECT_EQ(found.pages, block.pages);
            EXPECT_EQ(found.number, block.number);
            EXPECT_TRUE(addresses.insert(block.address()).second);
        }
    }
}

TEST_F(SampledAreaTest, SmallBlocksOfOneSizeSharePages) {
    const SampledBlock first = take(smallest);
    for (unsigned i = 1; i != SampledPages::max_blocks; ++i) {
        EXPECT_EQ(take(smallest).pages, first.pages);
    }
    EXPECT_NE(take(smallest).pages, first.pages);
    EXPECT_NE(take(of_1_kib).pages, first.pages);
    EXPECT_NE(take(smallest, other_pool).pages, first.pages);
}

// 51 blocks of 80 B leave 16 B of a page.
TEST_F(SampledAreaTest, FindsNoBlockInTheRestOfItsPages) {
    const SampledBlock block = take({1, 0});
    const char* const rest = block.address() + block.pages->blocks() * block.pages->block_bytes();
    ASSERT_EQ(block.number, 0U);
    ASSERT_LT(rest, block.address() + block.pages->bytes());
    EXPECT_EQ(SampledArea::find(rest - 1).number, block.pages->blocks() - 1);
    EXPECT_EQ(SampledArea::find(rest).pages, nullptr);
}

TEST_F(SampledAreaTest, FreedBlockIsTakenAgain) {
    const SampledBlock first = take(of_1_kib);
    const SampledBlock second = take(of_1_kib);
    EXPECT_TRUE(area_.free(first).was_in_use);
    EXPECT_EQ(take(of_1_kib).address(), first.address());
    EXPECT_TRUE(second.is_in_use());
}

TEST_F(SampledAreaTest, UseEndsOnceAndReturnsWhatWasStored) {
    const SampledBlock block = take(of_1_kib);
    auto* const stored = reinterpret_cast<statistics::ProfiledBlock*>(&area_);
    block.profiled() = stored;
    const SampledArea::Freed freed = area_.free(block);
    EXPECT_TRUE(freed.was_in_use);
    EXPECT_EQ(freed.profiled, stored);
    EXPECT_FALSE(block.is_in_use());
    EXPECT_FALSE(area_.free(block).was_in_use);
}

TEST_F(SampledAreaTest, PagesCloseWithTheirLastBlock) {
    const SampledBlock first = take(smallest);
    const SampledBlock second = take(smallest);
    EXPECT_EQ(area_.free(first).closed_bytes, 0U);
    EXPECT_EQ(area_.free(second).closed_bytes, SampledArea::bytes_for(smallest));
    EXPECT_EQ(area_.take(pool, smallest).pages, nullptr);
}

// They read as zeros when they are used again.
TEST_F(SampledAreaTest, ClosedPagesKeepNoMemory) {
    std::vector<SampledBlock> blocks;
    for (int i = 0; i < 64; ++i) {
        blocks.push_back(take(of_4_kib));
        std::memset(blocks.back().address(), 1, 4096);
    }
    for (const SampledBlock block : blocks) area_.free(block);
    int zeros = 0;
    for (int i = 0; i < 64; ++i) zeros += *take(of_4_kib).address() == 0 ? 1 : 0;
    EXPECT_EQ(zeros, 64);
}

TEST_F(SampledAreaTest, ForgetsTheBlocksOfOnePool) {
    const SampledBlock kept = take(smallest, other_pool);
    (void)take(smallest);
    (void)take(smallest);
    (void)take(of_64_kib);
    EXPECT_EQ(area_.forget_pool(pool),
              SampledArea::bytes_for(smallest) + SampledArea::bytes_for(of_64_kib));
    EXPECT_EQ(area_.forget_pool(pool), 0U);
    EXPECT_TRUE(kept.is_in_use());
}

}  // namespace
}  // namespace tensorpool::pages
