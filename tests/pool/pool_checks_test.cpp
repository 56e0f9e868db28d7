// Pool::owns and Pool::usable_size. Misuse that ends the process is tested in tests/misuse.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "pool/check_levels.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t sizes[] = {1,        64,       100,          2 * kib, 4 * kib,
                                 20 * kib, 64 * kib, 64 * kib + 1, 5 * mib};

class PoolFind : public ::testing::TestWithParam<Checks> {
protected:
    PoolOptions options() const { return {.checks = GetParam()}; }
    MemoryPool pool_{options()};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolFind, testing::check_levels(), testing::name_of_level);

TEST_P(PoolFind, OwnsEveryByteOfABlockInUse) {
    for (const std::size_t bytes : sizes) {
        const auto* const block = static_cast<const char*>(pool_.allocate(bytes));
        const std::size_t usable = pool_.usable_size(block);
        for (const std::size_t inside : {std::size_t{0}, std::size_t{1}, usable / 2, usable - 1}) {
            EXPECT_TRUE(pool_.owns(block + inside)) << bytes << " + " << inside;
        }
        pool_.deallocate(const_cast<char*>(block));
    }
}

TEST_P(PoolFind, DoesNotOwnBytesBesideABlock) {
    for (const std::size_t bytes : sizes) {
        MemoryPool pool(options());
        const auto* const block = static_cast<const char*>(pool.allocate(bytes));
        EXPECT_FALSE(pool.owns(block - 1)) << bytes;
        const char* const end = block + pool.usable_size(block);
        // Below 4 KiB the next block begins there. It is free and may lie in this thread's cache.
        EXPECT_FALSE(pool.owns(end)) << bytes;
        EXPECT_FALSE(pool.owns(end + 63)) << bytes;
        pool.deallocate(const_cast<char*>(block));
    }
}

TEST_P(PoolFind, UsableSizeIsNonzeroOnlyAtTheBeginningOfABlock) {
    for (const std::size_t bytes : sizes) {
        auto* const block = static_cast<char*>(pool_.allocate(bytes));
        EXPECT_GE(pool_.usable_size(block), bytes);
        EXPECT_EQ(pool_.usable_size(block + 1), 0U);
        EXPECT_EQ(pool_.usable_size(block + bytes), 0U);
        EXPECT_EQ(pool_.usable_size(block - 64), 0U);
        pool_.deallocate(block);
        EXPECT_EQ(pool_.usable_size(block), 0U);
    }
}

TEST_P(PoolFind, DoesNotOwnFreedBlocks) {
    for (const std::size_t bytes : sizes) {
        auto* const block = static_cast<char*>(pool_.allocate(bytes));
        auto* const neighbour = static_cast<char*>(pool_.allocate(bytes));
        pool_.deallocate(block);
        EXPECT_FALSE(pool_.owns(block)) << bytes;
        EXPECT_FALSE(pool_.owns(block + bytes - 1)) << bytes;
        EXPECT_TRUE(pool_.owns(neighbour)) << bytes;
        pool_.deallocate(neighbour);
        pool_.trim();
        EXPECT_FALSE(pool_.owns(block)) << bytes;
        EXPECT_FALSE(pool_.owns(neighbour + bytes - 1)) << bytes;
    }
}

TEST_P(PoolFind, DoesNotOwnForeignMemory) {
    MemoryPool other(options());
    int on_stack = 0;
    const auto on_heap = std::make_unique<int>(0);
    for (const void* const p :
         {static_cast<const void*>(nullptr), static_cast<const void*>(&on_stack),
          static_cast<const void*>(on_heap.get()), reinterpret_cast<const void*>(UINTPTR_MAX),
          reinterpret_cast<const void*>(std::uintptr_t{1} << 46)}) {
        EXPECT_FALSE(pool_.owns(p)) << p;
        EXPECT_EQ(pool_.usable_size(p), 0U) << p;
    }
    for (const std::size_t bytes : sizes) {
        auto* const block = static_cast<char*>(other.allocate(bytes));
        EXPECT_FALSE(pool_.owns(block));
        EXPECT_FALSE(pool_.owns(block + bytes / 2));
        EXPECT_EQ(pool_.usable_size(block), 0U);
        EXPECT_TRUE(other.owns(block));
        other.deallocate(block);
    }
}

TEST_P(PoolFind, FindsAlignedBlocksOfWholePages) {
    auto* const block = static_cast<char*>(pool_.allocate(100, 64 * kib));
    EXPECT_TRUE(pool_.owns(block + 4095));
    EXPECT_FALSE(pool_.owns(block + 4096));
    EXPECT_EQ(pool_.usable_size(block), 4096U);
    pool_.deallocate(block);
}

TEST_P(PoolFind, BlockOfADestroyedPoolIsNotOwned) {
    std::vector<char*> blocks;
    {
        MemoryPool gone(PoolOptions{.checks = Checks::off});
        for (const std::size_t bytes : sizes) {
            blocks.push_back(static_cast<char*>(gone.allocate(bytes)));
        }
    }
    MemoryPool next(options());
    for (const char* const block : blocks) {
        EXPECT_FALSE(next.owns(block));
        EXPECT_FALSE(pool_.owns(block + 1));
    }
}

// The address may be any: its memory may be mapped and freed at the same time.
TEST_P(PoolFind, OwnsIsSafeWhileMemoryOfPoolsIsMappedAndFreed) {
    MemoryPool other(PoolOptions{.retain = {.milliseconds = 0}, .checks = GetParam()});
    auto* const around = static_cast<char*>(other.allocate(8 * mib));
    other.deallocate(around);
    std::atomic<bool> done = false;
    std::thread asker([&] {
        for (std::size_t at = 0; !done; at = (at + 5 * kib) % (8 * mib)) {
            EXPECT_FALSE(pool_.owns(around + at));
            (void)other.owns(around + at);
            EXPECT_EQ(pool_.usable_size(around + at), 0U);
            (void)other.usable_size(around + at);
        }
    });
    for (unsigned round = 0; round < 30; ++round) {
        std::vector<void*> blocks;
        for (std::size_t bytes = 100; bytes < 2 * mib; bytes = bytes * 5 / 4) {
            blocks.push_back(other.allocate(bytes));
        }
        for (std::size_t i = 0; i < blocks.size(); i += 2) other.deallocate(blocks[i]);
        for (std::size_t i = 1; i < blocks.size(); i += 2) other.deallocate(blocks[i]);
        other.trim();
    }
    done = true;
    asker.join();
}

}  // namespace
}  // namespace tensorpool
