#include <tensorpool/memory_pool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t tib = mib * mib;

PoolOptions without_largest_request() {
    return {.max_allocation = SIZE_MAX, .checks = Checks::off};
}

TEST(PoolLarge, RequestBeyondTheAddressSpaceFails) {
    MemoryPool pool(without_largest_request());
    for (const std::size_t bytes :
         {3 * tib, 16 * tib, 16 * tib + 4096, SIZE_MAX - 5000, SIZE_MAX}) {
        EXPECT_EQ(pool.try_allocate(bytes), nullptr) << bytes;
    }
    EXPECT_THROW(pool.allocate_zeroed(SIZE_MAX, 2), AllocationError);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolLarge, AlignmentAbove1GibFails) {
    MemoryPool pool;
    for (std::size_t alignment = 2 * kib * mib; alignment != 0; alignment *= 2) {
        EXPECT_EQ(pool.try_allocate(64, alignment), nullptr) << alignment;
        EXPECT_THROW(pool.allocate(64, alignment), AllocationError) << alignment;
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolLarge, EveryAlignmentUpTo1GibIsSupported) {
    MemoryPool pool;
    for (std::size_t alignment = 4 * kib; alignment <= kib * mib; alignment *= 2) {
        void* const block = pool.allocate(100, alignment);
        void* const next = pool.allocate(4 * kib + 1, alignment);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U) << alignment;
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(next) % alignment, 0U) << alignment;
        pool.deallocate(block, 100, alignment);
        pool.deallocate(next);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

}  // namespace
}  // namespace tensorpool
