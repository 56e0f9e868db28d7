// Marked blocks: where they lie, what they cost other blocks, and how many budgets share them.

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>

#include "blocks/taken_numbers.hpp"
#include "pages/address_space.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/pool.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;

PoolOptions unchecked() {
    PoolOptions options;
    options.name = "marked";
    options.checks = Checks::off;
    return options;
}

class MarkedBlocks : public ::testing::Test {
protected:
    detail::ThreadCache& inline_cache() {
        return detail::thread_cache(
            detail::TablePlace(detail::PoolAccess::of(pool_).parts().number()));
    }
    void* allocate_charged(std::size_t bytes) {
        const BudgetScope scope(budget_);
        return pool_.allocate(bytes);
    }

    MemoryPool pool_{unchecked()};
    Budget budget_{"request"};
};

TEST_F(MarkedBlocks, FreesBesideAChargedBlockStayInline) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "inline paths find no cache";
    pool_.deallocate(pool_.allocate(256), 256);
    void* const charged = allocate_charged(1000);
    void* const block = pool_.allocate(256);
    const unsigned bucket = detail::bucket_of(256);
    EXPECT_TRUE(inline_cache().is_guarded_or_null(charged));
    ASSERT_FALSE(inline_cache().is_guarded_or_null(block));
    EXPECT_TRUE(inline_cache().push(bucket, block));
    EXPECT_EQ(inline_cache().pop(bucket, 256), block);
    pool_.deallocate(block, 256);
    pool_.deallocate(charged, 1000);
    EXPECT_EQ(budget_.in_use(), 0U);
}

TEST_F(MarkedBlocks, PairsInsideAScopeAllocateInline) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "inline paths find no cache";
    const BudgetScope scope(budget_);
    pool_.deallocate(pool_.allocate(256), 256);
    EXPECT_EQ(budget_.in_use(), 256U) << "the freed block stays ready";
    void* const block = inline_cache().pop(detail::bucket_of(256), 256);
    EXPECT_NE(block, nullptr);
    pool_.deallocate(block, 256);
}

TEST_F(MarkedBlocks, BlocksOfOtherSizesAndOfOutsideAreFreedInsideAScope) {
    void* const outside = pool_.allocate(256);
    void* const inside = allocate_charged(256);
    {
        Budget other("other");
        const BudgetScope scope(other);
        std::vector<void*> blocks;
        for (int i = 0; i != 100; ++i) blocks.push_back(pool_.allocate(256));
        pool_.deallocate(outside, 256);
        pool_.deallocate(inside, 256);
        EXPECT_EQ(budget_.in_use(), 0U);
        EXPECT_GE(other.in_use(), 100 * 256U);
        for (void* const block : blocks) pool_.deallocate(block, 256);
        for (int i = 0; i != 200; ++i) EXPECT_NE(blocks.emplace_back(pool_.allocate(256)), outside);
        for (std::size_t i = 100; i != blocks.size(); ++i) pool_.deallocate(blocks[i], 256);
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(MarkedBlocks, ThousandsOfBudgetsWithABlockEachTakeTheirRecordsOnly) {
    constexpr std::size_t count = 3000;
    Budget process("process");
    std::vector<std::unique_ptr<Budget>> budgets;
    std::vector<void*> blocks;
    const auto add = [&] {
        budgets.push_back(std::make_unique<Budget>(process, "request"));
        const BudgetScope scope(*budgets.back());
        blocks.push_back(pool_.allocate(64));
    };
    add();
    const PoolStatistics before = pool_.statistics();
    while (blocks.size() != count) add();
    const PoolStatistics after = pool_.statistics();
    EXPECT_LE(after.record_bytes - before.record_bytes, count * 64);
    EXPECT_LE(after.capacity_bytes - before.capacity_bytes, count * 64 + mib);
    EXPECT_EQ(process.in_use(), count * 64);
    for (std::size_t i = 0; i != count; ++i) {
        EXPECT_EQ(budgets[i]->in_use(), 64U);
        pool_.deallocate(blocks[i], 64);
        EXPECT_EQ(budgets[i]->in_use(), 0U);
    }
    EXPECT_EQ(process.in_use(), 0U);
    pool_.trim();
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
}

TEST_F(MarkedBlocks, EndOfAScopeLeavesFreeBlocksForTheNextBudget) {
    for (int round = 0; round != 50; ++round) {
        Budget budget("request");
        const BudgetScope scope(budget);
        std::vector<void*> blocks;
        for (int i = 0; i != 100; ++i) blocks.push_back(pool_.allocate(1000));
        for (void* const block : blocks) pool_.deallocate(block, 1000);
        EXPECT_LE(pool_.get_total_capacity(), 2 * mib);
    }
}

TEST_F(MarkedBlocks, ThreadWithoutACacheIsChargedToo) {
    const testing::TakenNumbers numbers(detail::cached_pool_count);
    MemoryPool pool(unchecked());
    ASSERT_EQ(detail::PoolAccess::of(pool).parts().number(), detail::cached_pool_count);
    void* block = nullptr;
    {
        const BudgetScope scope(budget_);
        block = pool.allocate(1000);
    }
    EXPECT_EQ(budget_.in_use(), kib);
    pool.deallocate(block, 1000);
    EXPECT_EQ(budget_.in_use(), 0U);
}

// The low addresses are lent to a pool that does not exist.
class LowAddressesUsedUp : public MarkedBlocks {
protected:
    void SetUp() override {
        pages::AddressSpace& space = pages::address_space();
        for (pages::PageCount pages = 1U << 22; pages >= pages::granule_pages; pages /= 2) {
            for (;;) {
                const pages::PageRun run =
                    space.lend(lender, pages, pages, 1, pages::AddressSpace::marked_shard);
                if (run.count == 0) break;
                runs_.push_back(run);
            }
        }
    }
    void TearDown() override {
        for (const pages::PageRun& run : runs_) pages::address_space().take_back(lender, run);
    }

    static constexpr unsigned lender = pages::AddressSpace::max_pools - 1;
    std::vector<pages::PageRun> runs_;
};

TEST_F(LowAddressesUsedUp, ChargedBlocksLieAmongOthersAndAreRecognized) {
    std::atomic<bool> is_charged = false;
    void* block = nullptr;
    // It has its cache before blocks of the pool are marked.
    std::thread other([&] {
        pool_.deallocate(pool_.allocate(1000), 1000);
        testing::wait_until("the block is charged", is_charged);
        pool_.deallocate(block, 1000);
        pool_.deallocate(pool_.allocate(1000), 1000);
    });
    for (int i = 0; i != 10; ++i) pool_.deallocate(pool_.allocate(1000), 1000);
    block = allocate_charged(1000);
    EXPECT_GE(reinterpret_cast<std::uintptr_t>(block), pages::address_space().first_unguarded());
    EXPECT_EQ(budget_.in_use(), kib);
    is_charged = true;
    other.join();
    EXPECT_EQ(budget_.in_use(), 0U);
    for (int i = 0; i != 100; ++i) {
        void* const charged = allocate_charged(64 * kib);
        std::memset(charged, 1, 64 * kib);
        pool_.deallocate(charged, 64 * kib);
    }
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    pool_.trim();
    EXPECT_EQ(pool_.get_total_capacity(), 0U);
}

using MarkedBlocksDeath = MarkedBlocks;

TEST_F(MarkedBlocksDeath, SecondFreeOfAChargedBlockIsReported) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the tool reports it";
    void* const block = allocate_charged(1000);
    pool_.deallocate(block, 1000);
    EXPECT_DEATH(pool_.deallocate(block, 1000), "double-free");
}

TEST_F(MarkedBlocksDeath, FreeInsideAChargedBlockIsReported) {
    if (platform::has_memory_tool()) GTEST_SKIP() << "the tool reports it";
    char* const block = static_cast<char*>(allocate_charged(1000));
    EXPECT_DEATH(pool_.deallocate(block + 64, 900), "interior-free");
    pool_.deallocate(block, 1000);
}

}  // namespace
}  // namespace tensorpool
