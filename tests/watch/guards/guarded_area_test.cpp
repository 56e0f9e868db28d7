#include "watch/guards/guarded_area.hpp"

#include <gtest/gtest.h>

#include "pages/address_space.hpp"

namespace tensorpool::watch {
namespace {

using pages::address_space;

constexpr unsigned pool = 78;

class GuardedAreaTest : public ::testing::Test {
protected:
    void SetUp() override {
        if (!area_.set_up()) GTEST_SKIP() << "no addresses for guarded blocks";
    }
    ~GuardedAreaTest() override { area_.forget_pool(pool); }

    static char* first_address() { return address_space().address_of(0); }
    static char* end_address() {
        return reinterpret_cast<char*>(address_space().first_unguarded());
    }
    std::size_t max_bytes() const { return area_.max_block_bytes(); }
    void end(GuardedBlock& block) {
        ASSERT_TRUE(GuardedArea::end_use(block));
        area_.close(block);
    }

    GuardedArea& area_ = guarded_area();
};

TEST_F(GuardedAreaTest, BlocksAndThePagesBesideThemLieInTheArea) {
    for (int i = 0; i < 100; ++i) {
        GuardedBlock* const block = area_.take(pool, "mine", max_bytes(), 64);
        ASSERT_NE(block, nullptr) << i;
        char* const first_page = GuardedArea::address_of(*block);
        EXPECT_GE(first_page, first_address() + page_bytes);
        EXPECT_LE(first_page + block->page_bytes_in_use() + page_bytes, end_address());
        end(*block);
    }
}

TEST_F(GuardedAreaTest, BlockMayTakeAThirtySecondOfIt) {
    EXPECT_EQ(area_.take(pool, "mine", max_bytes() + 1, 64), nullptr);
    GuardedBlock* const block = area_.take(pool, "mine", max_bytes(), 64);
    ASSERT_NE(block, nullptr);
    end(*block);
}

TEST_F(GuardedAreaTest, RecordOfAFreedBlockIsReusedWithoutTheStackOfItsFree) {
    GuardedBlock* const first = area_.take(pool, "mine", 100, 64);
    ASSERT_NE(first, nullptr);
    end(*first);
    EXPECT_FALSE(first->freed.view().empty());
    area_.forget_pool(pool);
    GuardedBlock* const again = area_.take(pool, "mine", 100, 64);
    ASSERT_NE(again, nullptr);
    EXPECT_TRUE(again->freed.view().empty());
    EXPECT_FALSE(again->allocated.view().empty());
    end(*again);
}

TEST_F(GuardedAreaTest, ForgettingAPoolReturnsTheBytesOfItsBlocksInUse) {
    GuardedBlock* const freed = area_.take(pool, "mine", 100, 64);
    GuardedBlock* const in_use = area_.take(pool, "mine", 100, 64);
    GuardedBlock* const of_another = area_.take(pool + 1, "other", 100, 64);
    ASSERT_NE(of_another, nullptr);
    end(*freed);
    EXPECT_EQ(area_.forget_pool(pool), in_use->page_bytes_in_use());
    EXPECT_EQ(GuardedArea::find(GuardedArea::address_of(*of_another)), of_another);
    EXPECT_EQ(area_.forget_pool(pool + 1), of_another->page_bytes_in_use());
    EXPECT_EQ(area_.forget_pool(pool), 0U);
}

}  // namespace
}  // namespace tensorpool::watch
