// Pool::allocate_zeroed and Pool::reallocate.

#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>

#include "pool/check_levels.hpp"

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;

class PoolBytes : public ::testing::TestWithParam<Checks> {
protected:
    void TearDown() override { EXPECT_EQ(pool_.get_total_allocated(), 0U); }

    unsigned char* counting_block(std::size_t bytes) {
        auto* const block = static_cast<unsigned char*>(pool_.allocate(bytes));
        std::iota(block, block + bytes, static_cast<unsigned char>(0));
        return block;
    }
    static bool counts(const void* block, std::size_t bytes) {
        const auto* const begin = static_cast<const unsigned char*>(block);
        for (std::size_t i = 0; i < bytes; ++i) {
            if (begin[i] != static_cast<unsigned char>(i)) return false;
        }
        return true;
    }

    MemoryPool pool_{PoolOptions{.max_allocation = 512 * mib, .checks = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(Checks, PoolBytes, testing::check_levels(), testing::name_of_level);

// Zeroed -----------------------------------------------------------------------------------------

TEST_P(PoolBytes, ZeroedBlockIsZeroAfterReuse) {
    for (const std::size_t bytes : {64UL, 1000UL, 64 * kib, 64 * kib + 1, 3 * mib}) {
        for (unsigned round = 0; round < 3; ++round) {
            auto* const block =
                static_cast<unsigned char*>(pool_.allocate_zeroed(bytes / 4 + 1, 4));
            EXPECT_TRUE(std::all_of(block, block + bytes, [](unsigned char b) { return b == 0; }));
            std::memset(block, 0xFF, pool_.usable_size(block));
            pool_.deallocate(block);
        }
    }
}

TEST_P(PoolBytes, ZeroedBlockIsZeroAfterReuseByOtherSizes) {
    void* const one = pool_.allocate(2 * mib);
    void* const other = pool_.allocate(3 * mib);
    std::memset(one, 0xFF, 2 * mib);
    std::memset(other, 0xFF, 3 * mib);
    pool_.deallocate(one);
    pool_.deallocate(other);
    auto* const joined = static_cast<unsigned char*>(pool_.allocate_zeroed(1, 5 * mib));
    EXPECT_TRUE(std::all_of(joined, joined + 5 * mib, [](unsigned char b) { return b == 0; }));
    pool_.deallocate(joined);
}

TEST_P(PoolBytes, ZeroedBlockIsZeroAfterItsPagesWereReturned) {
    void* const dirty = pool_.allocate(3 * mib);
    std::memset(dirty, 0xFF, 3 * mib);
    pool_.deallocate(dirty);
    pool_.trim();
    auto* const block = static_cast<unsigned char*>(pool_.allocate_zeroed(3, mib));
    EXPECT_TRUE(std::all_of(block, block + 3 * mib, [](unsigned char b) { return b == 0; }));
    pool_.deallocate(block);
}

TEST_P(PoolBytes, ZeroedCountThatOverflowsFails) {
    EXPECT_THROW(pool_.allocate_zeroed(SIZE_MAX, 2), AllocationError);
    EXPECT_THROW(pool_.allocate_zeroed(2, SIZE_MAX), AllocationError);
    EXPECT_THROW(pool_.allocate_zeroed(SIZE_MAX / 64 + 2, 64), AllocationError);
    EXPECT_THROW(pool_.allocate_zeroed(std::size_t{1} << 32, std::size_t{1} << 32),
                 AllocationError);
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
}

// Reallocate -------------------------------------------------------------------------------------

TEST_P(PoolBytes, ReallocateOfNullAllocates) {
    void* const block = pool_.reallocate(nullptr, 0, 1000);
    EXPECT_EQ(pool_.usable_size(block), 1024U);
    pool_.deallocate(block, 1000);
    EXPECT_EQ(pool_.reallocate(nullptr, 0, 0), nullptr);
    EXPECT_EQ(pool_.get_allocation_count(), 1U);
}

TEST_P(PoolBytes, ReallocateToZeroBytesFrees) {
    EXPECT_EQ(pool_.reallocate(pool_.allocate(1000), 1000, 0), nullptr);
    EXPECT_EQ(pool_.reallocate(pool_.allocate(mib), mib, 0), nullptr);
    EXPECT_EQ(pool_.get_deallocation_count(), 2U);
}

TEST_P(PoolBytes, ReallocateWithinItsBucketStaysAndIsNotCounted) {
    unsigned char* const block = counting_block(600);
    std::size_t before = 600;
    for (const std::size_t bytes : {1024UL, 513UL, 700UL, 600UL}) {
        EXPECT_EQ(pool_.reallocate(block, before, bytes), block);
        before = bytes;
    }
    EXPECT_TRUE(counts(block, 513));
    EXPECT_EQ(pool_.get_allocation_count(), 1U);
    pool_.deallocate(block, 600);
}

TEST_P(PoolBytes, ReallocateThatMovesKeepsBytesAndCountsBoth) {
    const std::size_t sizes[] = {64, 65, 5000, 64 * kib, 64 * kib + 1, 3 * mib, 64 * kib, 100, 1};
    std::size_t kept = sizes[0];
    std::size_t bytes = sizes[0];
    void* block = counting_block(bytes);
    for (const std::size_t next : sizes) {
        const std::size_t before = pool_.get_allocation_count();
        void* const moved = pool_.reallocate(block, bytes, next);
        EXPECT_EQ(pool_.get_allocation_count(), before + (moved == block ? 0 : 1));
        EXPECT_EQ(pool_.get_deallocation_count(), pool_.get_allocation_count() - 1);
        kept = std::min(kept, next);
        EXPECT_TRUE(counts(moved, kept)) << next;
        EXPECT_GE(pool_.usable_size(moved), next);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(moved) % 64, 0U);
        block = moved;
        bytes = next;
    }
    pool_.deallocate(block, bytes);
}

TEST_P(PoolBytes, LargeBlockShrinksInPlaceUntilHalfWouldBeWasted) {
    void* const block = pool_.allocate(mib);
    EXPECT_EQ(pool_.reallocate(block, mib, 600 * kib), block);
    void* const moved = pool_.reallocate(block, 600 * kib, 200 * kib);
    EXPECT_LT(pool_.usable_size(moved), 300 * kib);
    pool_.deallocate(moved, 200 * kib);
}

TEST_P(PoolBytes, ReallocatedBlockIsFreedWithAnySizeFromTheLastRequest) {
    for (const std::size_t large : {std::size_t{1000}, 800 * kib}) {
        const std::size_t small = large * 3 / 4;
        void* shrunk = pool_.reallocate(pool_.allocate(large), large, small);
        pool_.deallocate(shrunk, small);
        void* grown = pool_.reallocate(pool_.allocate(small), small, large);
        pool_.deallocate(grown, pool_.usable_size(grown));
    }
}

TEST_P(PoolBytes, FailedReallocateKeepsTheOldBlock) {
    for (const std::size_t bytes : {std::size_t{1000}, 300 * kib}) {
        unsigned char* const block = counting_block(bytes);
        const std::size_t allocations = pool_.get_allocation_count();
        EXPECT_THROW(pool_.reallocate(block, bytes, 513 * mib), AllocationError);
        EXPECT_THROW(pool_.reallocate(block, bytes, SIZE_MAX), AllocationError);
        EXPECT_TRUE(pool_.owns(block));
        EXPECT_TRUE(counts(block, bytes));
        EXPECT_EQ(pool_.get_allocation_count(), allocations);
        pool_.deallocate(block, bytes);
    }
}

}  // namespace
}  // namespace tensorpool
