#include "watch/guards/guarded_area.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <vector>

namespace tensorpool::watch {
namespace {

constexpr unsigned pool = 79;

class GuardedAreaMemory : public ::testing::Test {
protected:
    void SetUp() override {
        if (!area_.set_up()) GTEST_SKIP() << "no addresses for guarded blocks";
    }
    ~GuardedAreaMemory() override { area_.forget_pool(pool); }

    GuardedBlock* take_and_write() {
        GuardedBlock* const block = area_.take(pool, "mine", 100, 64);
        if (block != nullptr) std::memset(block->begin, 1, block->requested);
        return block;
    }
    void close(GuardedBlock& block) {
        ASSERT_TRUE(GuardedArea::end_use(block));
        area_.close(block);
    }
    static bool has_memory(const GuardedBlock& block) {
        unsigned char resident = 0;
        EXPECT_EQ(mincore(GuardedArea::address_of(block), 1, &resident), 0);
        return (resident & 1) != 0;
    }

    GuardedArea& area_ = guarded_area();
};

TEST_F(GuardedAreaMemory, OfClosedBlocksIsKeptUpToALimit) {
    std::vector<GuardedBlock*> closed;
    std::size_t bytes = 0;
    while (bytes <= GuardedArea::max_kept_bytes) {
        GuardedBlock* const block = take_and_write();
        ASSERT_NE(block, nullptr);
        bytes += block->page_bytes_in_use();
        close(*block);
        closed.push_back(block);
        const bool is_kept = bytes <= GuardedArea::max_kept_bytes;
        EXPECT_EQ(has_memory(*block), is_kept);
        EXPECT_EQ(has_memory(*closed.front()), is_kept);
    }
}

TEST_F(GuardedAreaMemory, BetweenDroppedBlocksStays) {
    GuardedBlock* const before = take_and_write();
    GuardedBlock* const between = take_and_write();
    GuardedBlock* const behind = take_and_write();
    ASSERT_NE(behind, nullptr);
    close(*behind);
    close(*before);
    for (std::size_t bytes = 0; bytes <= GuardedArea::max_kept_bytes;) {
        GuardedBlock* const block = take_and_write();
        ASSERT_NE(block, nullptr);
        bytes += block->page_bytes_in_use();
        close(*block);
    }
    EXPECT_FALSE(has_memory(*before));
    EXPECT_FALSE(has_memory(*behind));
    EXPECT_TRUE(has_memory(*between));
    EXPECT_EQ(between->begin[0], 1);
}

TEST_F(GuardedAreaMemory, IsDroppedWithThePool) {
    GuardedBlock* const closed = take_and_write();
    GuardedBlock* const in_use = take_and_write();
    ASSERT_NE(in_use, nullptr);
    char* const pages[] = {GuardedArea::address_of(*closed), GuardedArea::address_of(*in_use)};
    close(*closed);
    EXPECT_TRUE(has_memory(*closed));
    area_.forget_pool(pool);
    for (char* const page : pages) {
        unsigned char resident = 1;
        EXPECT_EQ(mincore(page, 1, &resident), 0);
        EXPECT_EQ(resident & 1, 0);
        EXPECT_EQ(GuardedArea::find(page), nullptr);
    }
}

}  // namespace
}  // namespace tensorpool::watch
