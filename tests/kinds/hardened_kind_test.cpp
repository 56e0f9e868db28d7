#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <tensorpool/memory_pool.hpp>

#include "platform/platform.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

PoolOptions hardened() {
    PoolOptions options;
    options.name = "mine";
    options.checks = Checks::hardened;
    return options;
}

class HardenedPool : public ::testing::Test {
protected:
    char* allocate(std::size_t bytes) { return static_cast<char*>(pool_.allocate(bytes)); }

    MemoryPool pool_{hardened()};
};

TEST_F(HardenedPool, ServesAllSizesAndCountsExactly) {
    std::vector<std::pair<char*, std::size_t>> blocks;
    std::size_t requested = 0;
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{56}, std::size_t{57}, std::size_t{64}, std::size_t{1000},
          64 * kib - 8, 64 * kib - 7, 64 * kib, 64 * kib + 1, 5 * mib}) {
        char* const block = allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0U);
        EXPECT_EQ(pool_.usable_size(block), bytes);
        std::memset(block, 7, bytes);
        blocks.emplace_back(block, bytes);
        requested += bytes;
    }
    EXPECT_EQ(pool_.statistics().requested_bytes, requested);
    EXPECT_EQ(pool_.statistics().allocations, blocks.size());
    for (const auto& [block, bytes] : blocks) pool_.deallocate(block, bytes);
    const PoolStatistics then = pool_.statistics();
    EXPECT_EQ(then.deallocations, blocks.size());
    EXPECT_EQ(then.in_use_bytes, 0U);
    EXPECT_GE(then.quarantined_bytes, 5 * mib);
    pool_.trim();
    EXPECT_EQ(pool_.statistics().quarantined_bytes, 0U);
    EXPECT_EQ(pool_.statistics().capacity_bytes, 0U);
}

TEST_F(HardenedPool, FreedBlocksWaitBeforeTheyAreReused) {
    PoolOptions options = hardened();
    options.quarantine_bytes = 16 * mib;
    MemoryPool pool(options);
    for (const std::size_t bytes : {std::size_t{100}, mib}) {
        std::set<void*> seen;
        for (int i = 0; i < 10; ++i) {
            void* const block = pool.allocate(bytes);
            EXPECT_TRUE(seen.insert(block).second);
            pool.deallocate(block, bytes);
            EXPECT_FALSE(pool.owns(block));
            EXPECT_EQ(pool.usable_size(block), 0U);
        }
    }
}

TEST_F(HardenedPool, TheQuarantineIsBounded) {
    PoolOptions options = hardened();
    options.quarantine_bytes = mib;
    MemoryPool pool(options);
    for (int i = 0; i < 5000; ++i) {
        pool.deallocate(pool.allocate(1000), 1000);
        pool.deallocate(pool.allocate(200 * kib), 200 * kib);
    }
    EXPECT_LE(pool.statistics().quarantined_bytes, 2 * mib);
    EXPECT_LE(pool.statistics().capacity_bytes, 16 * mib);
}

TEST_F(HardenedPool, BlocksLargerThanTheQuarantineAreReusedAtOnce) {
    PoolOptions options = hardened();
    options.quarantine_bytes = 0;
    MemoryPool pool(options);
    pool.deallocate(pool.allocate(1000), 1000);
    pool.deallocate(pool.allocate(mib), mib);
    EXPECT_EQ(pool.statistics().quarantined_bytes, 0U);
}

TEST_F(HardenedPool, HandsBlocksOutInRandomOrder) {
    std::vector<char*> blocks;
    for (int i = 0; i < 64; ++i) blocks.push_back(allocate(500));
    int rising = 0;
    for (std::size_t i = 1; i < blocks.size(); ++i) rising += blocks[i] > blocks[i - 1] ? 1 : 0;
    // In order, it would be 63 or 0; the probability of less than 12 or more than 51 is below 1e-6.
    EXPECT_GE(rising, 12);
    EXPECT_LE(rising, 51);
    for (char* const block : blocks) pool_.deallocate(block, 500);
}

TEST_F(HardenedPool, ReallocateAndZeroedKeepTheirContents) {
    char* block = static_cast<char*>(pool_.allocate_zeroed(100, 1));
    EXPECT_TRUE(std::all_of(block, block + 100, [](char c) { return c == 0; }));
    std::memset(block, 5, 100);
    for (const std::size_t bytes : {101U, 5000U, 300'000U, 50U}) {
        block = static_cast<char*>(pool_.reallocate(block, pool_.usable_size(block), bytes));
        EXPECT_TRUE(std::all_of(block, block + 50, [](char c) { return c == 5; }));
    }
    pool_.deallocate(block, 50);
    void* const aligned = pool_.allocate(100, 4096);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % 4096, 0U);
    pool_.deallocate(aligned, 100, 4096);
}

TEST_F(HardenedPool, ReturnsNullForZeroBytesAlsoIfBlocksAreParked) {
    char* const block = allocate(50);  // parks others of its size
    EXPECT_EQ(pool_.allocate(0), nullptr);
    EXPECT_EQ(pool_.allocate(0, 64), nullptr);
    EXPECT_EQ(pool_.try_allocate(0), nullptr);
    EXPECT_EQ(pool_.statistics().allocations, 1U);
    pool_.deallocate(block, 50);
}

TEST_F(HardenedPool, MemoryOfLargeBlocksServesSmallOnes) {
    PoolOptions options = hardened();
    options.max_capacity = 8 * mib;
    MemoryPool pool(options);
    for (int i = 0; i < 20; ++i) {
        char* const large = static_cast<char*>(pool.allocate(6 * mib));
        std::memset(large, 1, 6 * mib);
        pool.deallocate(large, 6 * mib);
        std::vector<void*> small;
        for (int k = 0; k < 1000; ++k) small.push_back(pool.allocate(4000));
        for (void* const block : small) pool.deallocate(block, 4000);
    }
    EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
}

TEST_F(HardenedPool, ThreadsFreeEachOthersBlocks) {
    std::vector<std::thread> threads;
    std::vector<std::atomic<char*>> shared(64);
    const auto free_unchanged = [this](char* block) {
        if (block == nullptr) return;
        EXPECT_EQ(std::string_view(block, 700).find_first_not_of(block[0]), std::string_view::npos);
        pool_.deallocate(block, 700);
    };
    for (unsigned seed = 1; seed <= 3; ++seed) {
        threads.emplace_back([&, seed]() mutable {
            for (int i = 0; i < 5000; ++i) {
                seed = seed * 1664525 + 1013904223;
                char* const block = allocate(700);
                std::memset(block, static_cast<char>(seed >> 24), 700);
                free_unchanged(shared[seed / 256 % shared.size()].exchange(block));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::atomic<char*>& slot : shared) free_unchanged(slot.load());
    EXPECT_EQ(pool_.statistics().in_use_bytes, 0U);
}

using HardenedPoolDeathTest = HardenedPool;

std::string report(const std::string& kind, const std::string& words) {
    return "^tensorpool: fatal: " + kind +
           " ptr=0x[0-9a-f]+ size=[0-9-]+ requested=[0-9-]+ pool=mine "
           "thread=[0-9]+\n  pool 'mine': .*" +
           words;
}

TEST_F(HardenedPoolDeathTest, WriteOfOneByteBeyondAnyBlockIsFoundAtItsFree) {
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{64}, std::size_t{1000}, 64 * kib, mib}) {
        char* const block = allocate(bytes);
        const auto overrun = [&] {
            block[bytes] ^= 1;
            pool_.deallocate(block, bytes);
        };
        EXPECT_EXIT(overrun(), ::testing::KilledBySignal(SIGABRT),
                    report("overrun", "was written at offset " + std::to_string(bytes)));
        pool_.deallocate(block, bytes);
    }
}

TEST_F(HardenedPoolDeathTest, WriteIntoAFreeSmallBlockIsFoundAtItsReuse) {
    const auto misuse = [] {
        PoolOptions options = hardened();
        options.quarantine_bytes = 0;
        MemoryPool pool(options);
        char* const block = static_cast<char*>(pool.allocate(1000));
        pool.deallocate(block, 1000);
        block[8] = 1;
        for (int i = 0; i < 10'000; ++i) (void)pool.allocate(1000);
    };
    EXPECT_EXIT(misuse(), ::testing::KilledBySignal(SIGABRT),
                report("write-after-free", "was written at offset 8"));
}

TEST_F(HardenedPoolDeathTest, WriteIntoAFreeBlockIsFoundEvenIfItsWholeSpanWasFree) {
    const auto misuse = [] {
        PoolOptions options = hardened();
        options.quarantine_bytes = 0;
        MemoryPool pool(options);
        void* blocks[16];
        for (void*& block : blocks) block = pool.allocate(60 * kib);
        for (void* const block : blocks) pool.deallocate(block, 60 * kib);
        static_cast<char*>(blocks[0])[8] = 1;
        for (int i = 0; i < 100; ++i) (void)pool.allocate(60 * kib);
    };
    EXPECT_EXIT(misuse(), ::testing::KilledBySignal(SIGABRT),
                report("write-after-free", "was written at offset 8"));
}

// Only what a request gets is checked, so that the unused part of a block stays out of memory.
TEST_F(HardenedPoolDeathTest, BytesFarBehindABlockAreCheckedBeforeALargerRequestGetsThem) {
    const auto misuse = [] {
        PoolOptions options = hardened();
        options.quarantine_bytes = 0;
        MemoryPool pool(options);
        char* const block = static_cast<char*>(pool.allocate(1100));
        block[1900] = 1;
        pool.deallocate(block, 1100);
        for (int i = 0; i < 10'000; ++i) (void)pool.allocate(2000);
    };
    EXPECT_EXIT(misuse(), ::testing::KilledBySignal(SIGABRT),
                report("write-after-free", "was written at offset 1900"));
}

TEST_F(HardenedPoolDeathTest, AccessToAFreedLargeBlockStops) {
    if (platform::page_bytes() > 4 * kib) GTEST_SKIP() << "blocks share pages of the system";
    char* const block = allocate(mib);
    pool_.deallocate(block, mib);
    EXPECT_EXIT((void)*static_cast<volatile char*>(block + 5000),
                ::testing::KilledBySignal(SIGABRT),
                report("access-after-free", "at offset 5000 of the block .*, which was freed"));
}

TEST_F(HardenedPoolDeathTest, AccessToThePageBehindALargeBlockStops) {
    if (platform::page_bytes() > 4 * kib) GTEST_SKIP() << "blocks share pages of the system";
    char* const block = allocate(mib);
    EXPECT_EXIT(*static_cast<volatile char*>(block + mib + platform::page_bytes()) = 1,
                ::testing::KilledBySignal(SIGABRT), report("access-beyond", "beyond its end"));
    pool_.deallocate(block, mib);
}

TEST_F(HardenedPoolDeathTest, SizedFreesMustStateTheRequestedBytes) {
    for (const std::size_t bytes : {std::size_t{100}, mib}) {
        char* const block = allocate(bytes);
        for (const std::size_t stated : {bytes - 1, bytes + 1}) {
            EXPECT_EXIT(pool_.deallocate(block, stated), ::testing::KilledBySignal(SIGABRT),
                        report("wrong-size", "was allocated with " + std::to_string(bytes) +
                                                 " B and freed with " + std::to_string(stated)));
        }
        pool_.deallocate(block, bytes);
    }
}

TEST_F(HardenedPoolDeathTest, SizedFreesMustStateTheAlignment) {
    for (const std::size_t bytes : {std::size_t{100}, mib}) {
        for (const std::size_t alignment : {std::size_t{64}, std::size_t{256}, 4 * kib}) {
            void* const block = pool_.allocate(bytes, alignment);
            for (const std::size_t stated : {std::size_t{64}, std::size_t{256}, 4 * kib}) {
                if (stated == alignment) continue;
                EXPECT_EXIT(
                    pool_.deallocate(block, bytes, stated), ::testing::KilledBySignal(SIGABRT),
                    report("wrong-size", "was allocated with an alignment of " +
                                             std::to_string(alignment) +
                                             " B and freed with one of " + std::to_string(stated)));
            }
            pool_.deallocate(block, bytes, alignment);
        }
    }
}

TEST_F(HardenedPool, AlignmentsUpToTheDefaultAreOneAndUnsizedFreesStateNone) {
    pool_.deallocate(pool_.allocate(100, 16), 100, 32);
    pool_.deallocate(pool_.allocate(100, 16), 100);
    pool_.deallocate(pool_.allocate(100), 100, 1);
    pool_.deallocate(pool_.allocate(100, 4096));
    pool_.deallocate(pool_.allocate(mib, 4096));
}

TEST_F(HardenedPoolDeathTest, SecondFreeOfABlockInTheQuarantineStops) {
    for (const std::size_t bytes : {std::size_t{100}, mib}) {
        char* const block = allocate(bytes);
        pool_.deallocate(block, bytes);
        EXPECT_EXIT(pool_.deallocate(block, bytes), ::testing::KilledBySignal(SIGABRT),
                    report("double-free", "was freed twice"));
        EXPECT_EXIT(pool_.deallocate(block), ::testing::KilledBySignal(SIGABRT),
                    report("double-free", "was freed twice"));
        EXPECT_EXIT(pool_.reallocate(block, bytes, 10), ::testing::KilledBySignal(SIGABRT),
                    report("double-free", "was freed twice"));
    }
}

TEST_F(HardenedPoolDeathTest, LeaksAndForeignPointersStop) {
    int mine = 0;
    EXPECT_EXIT(pool_.deallocate(&mine), ::testing::KilledBySignal(SIGABRT),
                report("foreign-free", "was never allocated by this pool"));
    const auto leak = [] {
        MemoryPool pool(hardened());
        (void)pool.allocate(100);
    };
    EXPECT_EXIT(leak(), ::testing::KilledBySignal(SIGABRT),
                report("leak", "destroyed with 1 blocks"));
}

}  // namespace
}  // namespace tensorpool
