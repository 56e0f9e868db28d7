#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"
#include "pool/pool.hpp"
#include "watch/guards/guarded_area.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

/// A pool that guards every block.
PoolOptions guarding_all() {
    PoolOptions options;
    options.name = "mine";
    options.checks = Checks::sampled;
    options.guard_share = 1;
    return options;
}

bool is_guarded(const void* p) {
    return watch::GuardedArea::find(p) != nullptr;
}

class GuardedBlocks : public ::testing::Test {
protected:
    void SetUp() override {
        if (!watch::guarded_area().set_up()) GTEST_SKIP() << "no addresses for guarded blocks";
    }
    char* allocate(std::size_t bytes, std::size_t alignment = 64) {
        char* const block = static_cast<char*>(pool_.allocate(bytes, alignment));
        EXPECT_TRUE(is_guarded(block));
        return block;
    }

    MemoryPool pool_{guarding_all()};
};

TEST_F(GuardedBlocks, AreAlignedZeroAndWritable) {
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{64}, std::size_t{1000}, 4 * kib,
                                    64 * kib, 64 * kib + 1, 3 * mib}) {
        for (const std::size_t alignment : {64, 256, 4096}) {
            char* const block = allocate(bytes, alignment);
            EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
            EXPECT_TRUE(std::all_of(block, block + bytes, [](char c) { return c == 0; }));
            std::memset(block, 7, bytes);
            EXPECT_EQ(pool_.usable_size(block), bytes);
            EXPECT_TRUE(pool_.owns(block + bytes - 1));
            EXPECT_FALSE(pool_.owns(block + bytes));
            pool_.deallocate(block, bytes, alignment);
            EXPECT_FALSE(pool_.owns(block));
        }
    }
}

TEST_F(GuardedBlocks, EveryFormOfFreeReachesThem) {
    pool_.deallocate(allocate(100), 100);
    pool_.deallocate(allocate(100));
    pool_.deallocate(allocate(100, 128), 100, 128);
    pool_.deallocate(allocate(100 * kib), 100 * kib);
    std::thread([this, block = allocate(100)] { pool_.deallocate(block, 100); }).join();
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
    EXPECT_EQ(pool_.statistics().guarded_blocks, 0U);
    EXPECT_EQ(pool_.statistics().guarded_allocations, 5U);
}

TEST_F(GuardedBlocks, CountExactly) {
    const std::size_t page = std::max(pages::page_bytes, platform::page_bytes());
    char* const small = allocate(100);
    char* const large = allocate(2 * page + 1);
    const PoolStatistics now = pool_.statistics();
    EXPECT_EQ(now.allocations, 2U);
    EXPECT_EQ(now.requested_bytes, 100 + 2 * page + 1);
    EXPECT_EQ(now.in_use_bytes, 4 * page);
    EXPECT_EQ(now.capacity_bytes, 4 * page);
    EXPECT_EQ(now.guarded_blocks, 2U);
    pool_.deallocate(small);
    pool_.deallocate(large);
    const PoolStatistics then = pool_.statistics();
    EXPECT_EQ(then.deallocations, 2U);
    EXPECT_EQ(then.in_use_bytes, 0U);
    EXPECT_EQ(then.capacity_bytes, 0U);
}

TEST_F(GuardedBlocks, AddressesAreNotReusedSoon) {
    std::set<void*> seen;
    for (int i = 0; i < 1000; ++i) {
        char* const block = allocate(100);
        EXPECT_TRUE(seen.insert(block).second);
        pool_.deallocate(block, 100);
    }
}

TEST_F(GuardedBlocks, MoveWhenTheyAreReallocated) {
    char* const block = allocate(100);
    std::memset(block, 5, 100);
    char* const longer = static_cast<char*>(pool_.reallocate(block, 100, 101));
    EXPECT_NE(longer, block);
    EXPECT_TRUE(std::all_of(longer, longer + 100, [](char c) { return c == 5; }));
    pool_.deallocate(longer, 101);
}

TEST_F(GuardedBlocks, MoveAlsoWhenTheyShrinkWithinTheirBucket) {
    char* const block = allocate(100);
    std::memset(block, 5, 100);
    char* const shorter = static_cast<char*>(pool_.reallocate(block, 100, 90));
    EXPECT_NE(shorter, block);
    EXPECT_TRUE(std::all_of(shorter, shorter + 90, [](char c) { return c == 5; }));
    pool_.deallocate(shorter, 90);
}

TEST_F(GuardedBlocks, AtMost1024AreInUseAtOnce) {
    std::vector<void*> blocks;
    for (unsigned i = 0; i < watch::GuardedArea::max_blocks; ++i) blocks.push_back(allocate(64));
    void* const other = pool_.allocate(64);
    EXPECT_FALSE(is_guarded(other));
    pool_.deallocate(other, 64);
    for (void* const block : blocks) pool_.deallocate(block, 64);
    pool_.deallocate(allocate(64), 64);
}

TEST_F(GuardedBlocks, RespectTheLimitOfTheCapacity) {
    PoolOptions options = guarding_all();
    options.max_capacity = mib;
    MemoryPool limited(options);
    void* const block = limited.allocate(mib);
    EXPECT_EQ(limited.try_allocate(64), nullptr);
    limited.deallocate(block);
    EXPECT_EQ(limited.statistics().failures, 1U);
}

TEST_F(GuardedBlocks, EndWithTheirPool) {
    void* block = nullptr;
    {
        MemoryPool pool(guarding_all());
        block = pool.allocate(100);
        EXPECT_TRUE(is_guarded(block));
    }
    EXPECT_FALSE(is_guarded(block));
}

TEST_F(GuardedBlocks, DescribeTheirFaults) {
    char* const block = allocate(64);
    char text[4096];
    ASSERT_NE(detail::describe_fault(block + 64, text, sizeof text), 0U);
    EXPECT_NE(std::string(text).find("tensorpool: fatal: access-beyond "), std::string::npos);
    EXPECT_NE(std::string(text).find("0 B beyond the end of the block"), std::string::npos) << text;
    EXPECT_NE(std::string(text).find("  allocated by thread "), std::string::npos);
    pool_.deallocate(block, 64);
    ASSERT_NE(detail::describe_fault(block, text, sizeof text), 0U);
    EXPECT_NE(std::string(text).find("access-after-free "), std::string::npos);
    EXPECT_NE(std::string(text).find("  freed by thread "), std::string::npos);
    int mine = 0;
    EXPECT_EQ(detail::describe_fault(&mine, text, sizeof text), 0U);
    text[0] = 'x';
    EXPECT_EQ(detail::describe_fault(block, text, 0), 0U);
    EXPECT_EQ(text[0], 'x');
    EXPECT_EQ(detail::describe_fault(block, text, 1), 0U);
    EXPECT_EQ(text[0], '\0') << "an empty text";
}

TEST_F(GuardedBlocks, ThreadsThatFreeEachOthersBlocksKeepContents) {
    std::atomic<bool> damaged = false;
    std::vector<std::atomic<char*>> shared(64);
    const auto work = [&](unsigned seed) {
        for (unsigned i = 0; i < 3000; ++i) {
            seed = seed * 1664525 + 1013904223;
            const auto fill = static_cast<char>(1 + seed % 100);
            char* const block = static_cast<char*>(pool_.allocate(128));
            std::memset(block, fill, 128);
            char* const other = shared[seed / 256 % shared.size()].exchange(block);
            if (other == nullptr) continue;
            const char first = other[0];
            if (first == 0 || std::any_of(other, other + 128, [&](char c) { return c != first; })) {
                damaged = true;
            }
            pool_.deallocate(other, 128);
        }
    };
    std::thread one(work, 1);
    std::thread two(work, 2);
    one.join();
    two.join();
    for (std::atomic<char*>& slot : shared) {
        if (char* const block = slot.load()) pool_.deallocate(block, 128);
    }
    EXPECT_FALSE(damaged);
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
    EXPECT_EQ(pool_.statistics().guarded_blocks, 0U);
}

TEST(SampledPool, GuardsNothingWithoutAShare) {
    PoolOptions options = guarding_all();
    options.guard_share = 0;
    MemoryPool pool(options);
    for (int i = 0; i < 10'000; ++i) {
        void* const block = pool.allocate(1000);
        EXPECT_FALSE(is_guarded(block));
        pool.deallocate(block, 1000);
    }
    EXPECT_EQ(pool.statistics().guarded_allocations, 0U);
}

TEST(SampledPool, GuardsNoneOfTheFirst4KibOfAThread) {
    PoolOptions options = guarding_all();
    options.guard_share = 0.99;
    for (int i = 0; i < 20; ++i) {
        MemoryPool pool(options);
        void* const block = pool.allocate(100);
        EXPECT_FALSE(is_guarded(block));
        pool.deallocate(block, 100);
    }
}

TEST(SampledPool, ServesMostBlocksInline) {
    PoolOptions options = guarding_all();
    options.guard_share = 0.01;
    MemoryPool pool(options);
    for (int i = 0; i < 100'000; ++i) pool.deallocate(pool.allocate(1000), 1000);
    const PoolStatistics statistics = pool.statistics();
    EXPECT_EQ(statistics.allocations, 100'000U);
    EXPECT_EQ(statistics.in_use_bytes, 0U);
    EXPECT_LT(statistics.guarded_allocations, 10'000U);
}

using GuardedBlocksDeathTest = GuardedBlocks;

/// Matches the first line of a report of this kind, and words that it contains.
std::string report(const std::string& kind, const std::string& words) {
    return "^tensorpool: fatal: " + kind +
           " ptr=0x[0-9a-f]+ size=[0-9]+ requested=[0-9]+ pool=mine "
           "thread=[0-9]+\n  pool 'mine': .*" +
           words;
}

TEST_F(GuardedBlocksDeathTest, WriteOfOneByteBeyondABlockStops) {
    char* const block = allocate(64);
    EXPECT_EXIT(*static_cast<volatile char*>(block + 64) = 1, ::testing::KilledBySignal(SIGABRT),
                report("access-beyond", "write to 0x[0-9a-f]+, 0 B beyond the end of the block"));
    pool_.deallocate(block, 64);
}

TEST_F(GuardedBlocksDeathTest, WriteIntoTheSlackIsFoundAtTheFree) {
    char* const block = allocate(100);
    const auto overrun = [&] {
        block[100] = 1;
        pool_.deallocate(block, 100);
    };
    EXPECT_EXIT(overrun(), ::testing::KilledBySignal(SIGABRT),
                report("overrun", "at offset 100 of the block"));
    const auto underrun = [&] {
        block[-1] = 1;
        pool_.deallocate(block, 100);
    };
    EXPECT_EXIT(underrun(), ::testing::KilledBySignal(SIGABRT),
                report("overrun", "at offset -1 of the block"));
    pool_.deallocate(block, 100);
}

TEST_F(GuardedBlocksDeathTest, AccessAfterTheFreeStops) {
    char* const block = allocate(100 * kib);
    pool_.deallocate(block, 100 * kib);
    EXPECT_EXIT((void)*static_cast<volatile char*>(block + 500), ::testing::KilledBySignal(SIGABRT),
                report("access-after-free", "500 B into the block .*, which was freed"));
}

TEST_F(GuardedBlocksDeathTest, SecondFreeStopsWithBothStacks) {
    char* const block = allocate(100);
    pool_.deallocate(block, 100);
    EXPECT_EXIT(pool_.deallocate(block, 100), ::testing::KilledBySignal(SIGABRT),
                report("double-free",
                       "was freed twice(.|\n)*  allocated by thread (.|\n)*  freed by "
                       "thread "));
    EXPECT_EXIT(pool_.deallocate(block), ::testing::KilledBySignal(SIGABRT),
                report("double-free", "was freed twice"));
}

TEST_F(GuardedBlocksDeathTest, InvalidFreesStop) {
    char* const block = allocate(1000);
    EXPECT_EXIT(pool_.deallocate(block + 64, 1000), ::testing::KilledBySignal(SIGABRT),
                report("interior-free", "lies 64 B inside the block"));
    EXPECT_EXIT(pool_.deallocate(block, 100), ::testing::KilledBySignal(SIGABRT),
                report("wrong-size", "was allocated with 1000 B and freed with 100 B"));
    EXPECT_EXIT(pool_.deallocate(block, 100'000), ::testing::KilledBySignal(SIGABRT),
                report("wrong-size", "was allocated with 1000 B and freed with 100000 B"));
    MemoryPool other(PoolOptions{.name = "theirs"});
    EXPECT_EXIT(other.deallocate(block), ::testing::KilledBySignal(SIGABRT),
                "pool 'theirs': deallocate: 0x[0-9a-f]+ lies in pool 'mine'");
    pool_.deallocate(block, 1000);
}

}  // namespace
}  // namespace tensorpool
