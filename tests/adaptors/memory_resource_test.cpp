#include <tensorpool/memory_resource.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <list>
#include <memory_resource>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorpool {
namespace {

bool is_aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

TEST(PoolResource, VectorUsesItsPool) {
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

TEST(PoolResource, DefaultUsesTheGlobalPool) {
    PoolResource resource;
    EXPECT_EQ(&resource.pool(), &get_global_memory_pool());
    const std::pmr::vector<int> values(100, &resource);
    EXPECT_TRUE(get_global_memory_pool().owns(values.data()));
}

TEST(PoolResource, EqualIfThePoolIsTheSame) {
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

TEST(PoolResource, ZeroBytesGetABlock) {
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

TEST(PoolResource, RefusedRequestThrowsAllocationError) {
    MemoryPool pool(PoolOptions{.max_allocation = 1 << 20});
    PoolResource resource(pool);
    EXPECT_THROW(static_cast<void>(resource.allocate(2 << 20)), AllocationError);
}

TEST(PoolResource, ServesTheResourcesOfTheStandardLibrary) {
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

TEST(ArenaResource, ContainersUseTheArena) {
    Arena arena;
    ArenaResource resource(arena);
    EXPECT_EQ(&resource.arena(), &arena);
    {
        std::pmr::vector<std::pmr::string> lines(&resource);
        std::pmr::list<int> numbers(&resource);
        std::pmr::unordered_map<int, std::pmr::string> map(&resource);
        for (int i = 0; i < 1000; ++i) {
            lines.emplace_back(200, static_cast<char>('a' + i % 26));
            numbers.push_back(i);
            map.emplace(i, std::to_string(i));
        }
        for (int i = 0; i < 1000; ++i) {
            EXPECT_EQ(std::string_view(lines[static_cast<std::size_t>(i)]),
                      std::string(200, static_cast<char>('a' + i % 26)));
            EXPECT_EQ(std::string_view(map.at(i)), std::to_string(i));
        }
        EXPECT_EQ(std::accumulate(numbers.begin(), numbers.end(), 0), 999 * 500);
        EXPECT_GE(arena.used(), 1000U * (200 + 64 + 64));
    }
    EXPECT_NE(arena.used(), 0U) << "blocks are not freed one by one";
    arena.reset();
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaResource, EqualIfTheArenaIsTheSame) {
    Arena arena;
    Arena other;
    MemoryPool pool;
    const ArenaResource resource(arena);
    EXPECT_TRUE(resource.is_equal(resource));
    EXPECT_TRUE(resource == ArenaResource(arena));
    EXPECT_FALSE(resource == ArenaResource(other));
    EXPECT_FALSE(resource.is_equal(PoolResource(pool)));
    EXPECT_FALSE(PoolResource(pool).is_equal(resource));
    EXPECT_FALSE(resource.is_equal(*std::pmr::new_delete_resource()));
}

TEST(ArenaResource, MovedContainersKeepElementsOnlyWithinAnArena) {
    Arena arena;
    Arena other;
    ArenaResource one(arena);
    ArenaResource same(arena);
    ArenaResource another(other);
    std::pmr::vector<int> values(1000, 7, &one);
    const int* const data = values.data();
    std::pmr::vector<int> moved(std::move(values), &same);
    EXPECT_EQ(moved.data(), data);
    const std::pmr::vector<int> copied(std::move(moved), &another);
    EXPECT_NE(copied.data(), data);
    EXPECT_EQ(copied, std::pmr::vector<int>(1000, 7));
    EXPECT_GE(other.used(), 4000U);
}

TEST(ArenaResource, EveryAlignmentIsMet) {
    Arena arena(ArenaOptions{.alignment = 8});
    ArenaResource resource(arena);
    for (std::size_t alignment = 1; alignment <= 8192; alignment *= 2) {
        for (const std::size_t bytes : {1U, 100U, 5000U}) {
            void* const block = resource.allocate(bytes, alignment);
            EXPECT_TRUE(is_aligned(block, alignment)) << bytes << " B at " << alignment;
            resource.deallocate(block, bytes, alignment);
        }
    }
}

TEST(ArenaResource, SmallNodesArePackedInAnArenaOfSmallAlignment) {
    Arena arena(ArenaOptions{.alignment = 8});
    ArenaResource resource(arena);
    static_cast<void>(resource.allocate(24, 8));
    static_cast<void>(resource.allocate(20, 4));
    EXPECT_EQ(arena.used(), 48U);
}

TEST(ArenaResource, ZeroBytesGetAnAddress) {
    Arena arena;
    ArenaResource resource(arena);
    for (const std::size_t alignment : {1U, 256U}) {
        void* const one = resource.allocate(0, alignment);
        void* const other = resource.allocate(0, alignment);
        EXPECT_NE(one, nullptr);
        EXPECT_NE(one, other);
        resource.deallocate(one, 0, alignment);
    }
}

TEST(ArenaResource, RefusedRequestThrowsAllocationError) {
    Arena arena(ArenaOptions{.max_allocation = 1 << 20});
    ArenaResource resource(arena);
    EXPECT_THROW(static_cast<void>(resource.allocate(2 << 20)), AllocationError);
    EXPECT_THROW(static_cast<void>(resource.allocate(1, 24)), std::invalid_argument);
}

TEST(ArenaResource, ServesSeveralThreads) {
    Arena arena;
    ArenaResource resource(arena);
    std::vector<std::thread> threads;
    for (int number = 0; number < 4; ++number) {
        threads.emplace_back([&resource, number] {
            std::pmr::vector<std::pmr::string> lines(&resource);
            for (std::size_t i = 0; i < 500; ++i)
                lines.emplace_back(i, static_cast<char>('a' + number));
            for (std::size_t i = 0; i < 500; ++i) {
                EXPECT_EQ(std::string_view(lines[i]),
                          std::string(i, static_cast<char>('a' + number)));
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tensorpool
