#include "pages/sampled_area.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "pages/address_space.hpp"

namespace tensorpool::pages {
namespace {

constexpr unsigned pool = 78;
constexpr unsigned other_pool = 79;

class SampledAreaTest : public ::testing::Test {
protected:
    ~SampledAreaTest() override {
        area_.forget_pool(pool);
        area_.forget_pool(other_pool);
    }
    SampledBlock& take(std::size_t bytes, unsigned of_pool = pool) {
        SampledBlock* const block = area_.take(of_pool, bytes);
        EXPECT_NE(block, nullptr);
        return *block;
    }
    void free(SampledBlock& block) {
        EXPECT_TRUE(SampledArea::end_use(block));
        area_.give_back(block);
    }

    SampledArea& area_ = sampled_area();
};

TEST_F(SampledAreaTest, BlocksHavePagesOfTheirOwnBelowAllOthers) {
    std::set<const char*> addresses;
    for (std::size_t bytes = 64; bytes <= 64 << 10; bytes *= 2) {
        SampledBlock& block = take(bytes);
        char* const address = SampledArea::address_of(block);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(address) % page_bytes, 0U);
        EXPECT_LT(reinterpret_cast<std::uintptr_t>(address) + bytes,
                  address_space().first_unguarded() + 1);
        std::memset(address, 1, bytes);
        EXPECT_EQ(address_space().map().at(address + bytes - 1).sampled(), &block);
        EXPECT_EQ(address_space().map().at(address).pool_number(), pool);
        EXPECT_TRUE(addresses.insert(address).second);
    }
}

TEST_F(SampledAreaTest, PagesOfAFreedBlockAreUsedAgain) {
    SampledBlock& first = take(1000);
    free(first);
    EXPECT_EQ(&take(2000), &first);
}

TEST_F(SampledAreaTest, UseEndsOnce) {
    SampledBlock& block = take(100);
    EXPECT_TRUE(SampledArea::end_use(block));
    EXPECT_FALSE(SampledArea::end_use(block));
    area_.give_back(block);
}

// Freed blocks beyond the kept pages lose their memory, and read as zeros when they are used again.
TEST_F(SampledAreaTest, FewFreedBlocksKeepTheirMemory) {
    std::vector<SampledBlock*> blocks;
    for (int i = 0; i < 64; ++i) {
        blocks.push_back(&take(4096));
        std::memset(SampledArea::address_of(*blocks.back()), 1, 4096);
    }
    for (SampledBlock* const block : blocks) free(*block);
    int zeros = 0;
    for (int i = 0; i < 64; ++i) zeros += *SampledArea::address_of(take(4096)) == 0 ? 1 : 0;
    EXPECT_GE(zeros, 32);
}

TEST_F(SampledAreaTest, ForgetsTheBlocksOfOnePool) {
    SampledBlock& kept = take(100, other_pool);
    take(100);
    take(5000);
    EXPECT_EQ(area_.forget_pool(pool),
              SampledArea::bytes_for(100) + SampledArea::bytes_for(5000));
    EXPECT_EQ(area_.forget_pool(pool), 0U);
    EXPECT_TRUE(kept.in_use);
}

}  // namespace
}  // namespace tensorpool::pages
