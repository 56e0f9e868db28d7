#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "pool/check_levels.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

std::uintptr_t address(const void* p) {
    return reinterpret_cast<std::uintptr_t>(p);
}

bool holds_only(const void* block, unsigned char byte, std::size_t bytes) {
    const auto* const begin = static_cast<const unsigned char*>(block);
    return std::all_of(begin, begin + bytes, [byte](unsigned char one) { return one == byte; });
}

/// Tests of the pool's interface, with and without inline caches.
class Pool : public ::testing::TestWithParam<Checks> {
protected:
    void TearDown() override { EXPECT_EQ(pool_.get_total_allocated(), 0U); }

    /// The usable bytes of the block that a request gets.
    std::size_t usable_for(std::size_t bytes, std::size_t alignment = 64) {
        void* const block = pool_.allocate(bytes, alignment);
        const std::size_t usable = pool_.usable_size(block);
        pool_.deallocate(block);
        return usable;
    }

    MemoryPool pool_{PoolOptions{.max_allocation = 512 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, Pool, testing::check_levels(), testing::name_of_level);

// Allocate ---------------------------------------------------------------------------------------

TEST_P(Pool, ZeroBytesReturnsNull) {
    EXPECT_EQ(pool_.allocate(0), nullptr);
    EXPECT_EQ(pool_.allocate(0, 4096), nullptr);
    EXPECT_EQ(pool_.try_allocate(0), nullptr);
    EXPECT_EQ(pool_.allocate_zeroed(0, 8), nullptr);
    EXPECT_EQ(pool_.allocate_zeroed(8, 0), nullptr);
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
    EXPECT_EQ(pool_.statistics().failures, 0U);
}

TEST_P(Pool, BlockIsTheNextPowerOfTwoUpTo64KiB) {
    EXPECT_EQ(usable_for(1), 64U);
    EXPECT_EQ(usable_for(64), 64U);
    for (std::size_t bytes = 64; bytes < 64 * kib; bytes *= 2) {
        EXPECT_EQ(usable_for(bytes + 1), 2 * bytes);
        EXPECT_EQ(usable_for(2 * bytes), 2 * bytes);
    }
}

TEST_P(Pool, LargerBlockWastesAtMostAnEighthOfItsPages) {
    for (std::size_t bytes = 64 * kib + 1; bytes < 400 * mib; bytes += bytes / 3 + 1) {
        const std::size_t pages = (bytes + 4095) / 4096 * 4096;
        const std::size_t usable = usable_for(bytes);
        EXPECT_GE(usable, bytes);
        EXPECT_LE(usable, pages + pages / 8) << bytes;
    }
}

TEST_P(Pool, WholeUsableSizeCanBeWrittenAndReadBack) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes <= 8 * mib; bytes = bytes * 2 + 1) {
        void* const block = pool_.allocate(bytes);
        std::memset(block, static_cast<int>(blocks.size()), pool_.usable_size(block));
        blocks.push_back(block);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        EXPECT_TRUE(
            holds_only(blocks[i], static_cast<unsigned char>(i), pool_.usable_size(blocks[i])));
        pool_.deallocate(blocks[i]);
    }
}

TEST_P(Pool, EveryBlockIsAlignedTo64) {
    std::vector<void*> blocks;
    for (std::size_t bytes = 1; bytes <= mib; bytes = bytes * 3 / 2 + 1) {
        for (unsigned i = 0; i < 5; ++i) blocks.push_back(pool_.allocate(bytes));
    }
    for (void* const block : blocks) {
        EXPECT_EQ(address(block) % 64, 0U);
        pool_.deallocate(block);
    }
}

TEST_P(Pool, SmallAlignmentsNeedNoMoreMemory) {
    for (std::size_t alignment = 1; alignment <= 64; alignment *= 2) {
        EXPECT_EQ(usable_for(1, alignment), 64U);
        EXPECT_EQ(usable_for(3000, alignment), 4096U);
    }
}

TEST_P(Pool, EveryAlignmentOfEverySizeIsHonored) {
    const std::size_t sizes[] = {1, 100, 1000, 2048, 2049, 5000, 64 * kib, 64 * kib + 1, 3 * mib};
    for (std::size_t alignment = 1; alignment <= 4 * mib; alignment *= 2) {
        std::vector<void*> blocks;
        for (const std::size_t bytes : sizes) {
            blocks.push_back(pool_.allocate(bytes, alignment));
            blocks.push_back(pool_.try_allocate(bytes, alignment));
        }
        for (void* const block : blocks) {
            ASSERT_NE(block, nullptr);
            EXPECT_EQ(address(block) % alignment, 0U) << alignment;
            pool_.deallocate(block);
        }
    }
}

TEST_P(Pool, AlignmentThatIsNotAPowerOfTwoIsRejected) {
    for (const std::size_t alignment : {std::size_t{0}, std::size_t{3}, std::size_t{48},
                                        std::size_t{65}, std::size_t{4095}, SIZE_MAX}) {
        EXPECT_THROW(pool_.allocate(100, alignment), std::invalid_argument) << alignment;
        EXPECT_EQ(pool_.try_allocate(100, alignment), nullptr) << alignment;
    }
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
}

// Deallocate -------------------------------------------------------------------------------------

TEST_P(Pool, FreeingNullHasNoEffect) {
    pool_.deallocate(nullptr);
    pool_.deallocate(nullptr, 0);
    pool_.deallocate(nullptr, 100);
    pool_.deallocate(nullptr, mib);
    pool_.deallocate(nullptr, 100, 4096);
    EXPECT_EQ(pool_.get_deallocation_count(), 0U);
}

TEST_P(Pool, SizedFreeAcceptsAnySizeFromRequestedToUsable) {
    for (std::size_t requested = 1; requested <= 300 * kib; requested = requested * 2 + 1) {
        const std::size_t usable = usable_for(requested);
        for (const std::size_t bytes : {requested, (requested + usable) / 2, usable - 1, usable}) {
            pool_.deallocate(pool_.allocate(requested), std::max(requested, bytes));
        }
    }
    EXPECT_EQ(pool_.get_allocation_count(), pool_.get_deallocation_count());
}

TEST_P(Pool, AlignedFreeAcceptsAnySizeFromRequestedToUsable) {
    for (std::size_t alignment = 1; alignment <= 64 * kib; alignment *= 2) {
        for (std::size_t requested = 1; requested <= 300 * kib; requested = requested * 3 + 1) {
            const std::size_t usable = usable_for(requested, alignment);
            for (const std::size_t bytes : {requested, (requested + usable) / 2, usable}) {
                pool_.deallocate(pool_.allocate(requested, alignment), bytes, alignment);
            }
        }
    }
    EXPECT_EQ(pool_.get_allocation_count(), pool_.get_deallocation_count());
}

TEST_P(Pool, FreedBlockServesTheNextRequestOfItsSize) {
    for (const std::size_t bytes : {100UL, 64 * kib, 100 * kib, 5 * mib}) {
        pool_.deallocate(pool_.allocate(bytes), bytes);
        const std::size_t capacity = pool_.get_total_capacity();
        for (unsigned i = 0; i < 1000; ++i) pool_.deallocate(pool_.allocate(bytes), bytes);
        EXPECT_EQ(pool_.get_total_capacity(), capacity);
    }
}

TEST_P(Pool, NeverWritesIntoFreeBlocks) {
    constexpr std::size_t bytes = 8 * kib;
    std::vector<unsigned char*> blocks;
    for (unsigned i = 0; i < 200; ++i) {
        blocks.push_back(static_cast<unsigned char*>(pool_.allocate(bytes)));
        std::memset(blocks.back(), 0xA5, bytes);
    }
    for (unsigned char* const block : blocks) pool_.deallocate(block, bytes);
    for (unsigned i = 0; i < 200; ++i) {
        blocks[i] = static_cast<unsigned char*>(pool_.allocate(bytes));
        EXPECT_TRUE(holds_only(blocks[i], 0xA5, bytes));
    }
    for (unsigned char* const block : blocks) pool_.deallocate(block, bytes);
}

}  // namespace
}  // namespace tensorpool
