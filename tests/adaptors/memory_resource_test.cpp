#include <tensorpool/memory_resource.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
#include <string>
#include <vector>

namespace tensorpool {
namespace {

bool is_aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

TEST(PoolResource, VectorLivesInThePoolThatItWasGiven) {
    MemoryPool pool;
    PoolResource resource(pool);
    {
        std::pmr::vector<std::pmr::string> lines(&resource);
        for (int i = 0; i < 100; ++i) lines.emplace_back(200, 'x');
        EXPECT_TRUE(pool.owns(lines.data()));
        EXPECT_TRUE(pool.owns(lines.back().data()));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolResource, WithoutAPoolUsesTheGlobalOne) {
    PoolResource resource;
    EXPECT_EQ(&resource.pool(), &get_global_memory_pool());
    const std::pmr::vector<int> values(100, &resource);
    EXPECT_TRUE(get_global_memory_pool().owns(values.data()));
}

TEST(PoolResource, EqualExactlyWhenThePoolIsTheSame) {
    MemoryPool pool;
    MemoryPool other;
    const PoolResource resource(pool);
    EXPECT_TRUE(resource.is_equal(resource));
    EXPECT_TRUE(resource == PoolResource(pool));
    EXPECT_FALSE(resource == PoolResource(other));
    EXPECT_FALSE(resource == PoolResource());
    EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
}

TEST(PoolResource, EveryAlignmentIsMet) {
    MemoryPool pool;
    PoolResource resource(pool);
    for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
        for (const std::size_t bytes : {1U, 100U, 5000U, 100'000U}) {
            void* const block = resource.allocate(bytes, alignment);
            EXPECT_TRUE(is_aligned(block, alignment)) << bytes << " B at " << alignment;
            resource.deallocate(block, bytes, alignment);
        }
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolResource, ZeroBytesGetABlockOfTheirOwn) {
    MemoryPool pool;
    PoolResource resource(pool);
    for (const std::size_t alignment : {1U, 256U}) {
        void* const one = resource.allocate(0, alignment);
        void* const other = resource.allocate(0, alignment);
        EXPECT_NE(one, nullptr);
        EXPECT_NE(one, other);
        resource.deallocate(one, 0, alignment);
        resource.deallocate(other, 0, alignment);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolResource, WhatThePoolCannotGiveThrowsItsError) {
    MemoryPool pool(PoolOptions{.max_allocation = 1 << 20});
    PoolResource resource(pool);
    EXPECT_THROW(static_cast<void>(resource.allocate(2 << 20)), AllocationError);
}

TEST(PoolResource, FeedsTheResourcesOfTheStandardLibrary) {
    MemoryPool pool;
    PoolResource resource(pool);
    {
        std::pmr::monotonic_buffer_resource buffer(&resource);
        std::pmr::unsynchronized_pool_resource pools(&resource);
        std::pmr::vector<int> in_buffer(10'000, 1, &buffer);
        std::pmr::vector<int> in_pools(10'000, 1, &pools);
        EXPECT_TRUE(pool.owns(in_buffer.data()));
        EXPECT_TRUE(pool.owns(in_pools.data()));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

}  // namespace
}  // namespace tensorpool
