#include <tensorpool/allocator.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <list>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tensorpool {
namespace {

template <class T>
using PooledVector = std::vector<T, Allocator<T>>;

struct alignas(256) Wide {
    float lanes[64];
};

bool is_aligned(const void* p, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(p) % alignment == 0;
}

TEST(Allocator, VectorUsesItsPool) {
    MemoryPool pool;
    {
        PooledVector<float> values(1000, pool);
        std::iota(values.begin(), values.end(), 0.0F);
        EXPECT_TRUE(pool.owns(values.data()));
        EXPECT_TRUE(is_aligned(values.data(), 64));
        for (int i = 0; i < 100'000; ++i) values.push_back(1.0F);
        EXPECT_EQ(values[999], 999.0F);
        EXPECT_GE(pool.get_total_allocated(), values.size() * sizeof(float));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
    EXPECT_EQ(pool.get_allocation_count(), pool.get_deallocation_count());
}

TEST(Allocator, DefaultUsesTheGlobalPool) {
    const PooledVector<int> values(100);
    EXPECT_EQ(&values.get_allocator().pool(), &get_global_memory_pool());
    EXPECT_TRUE(get_global_memory_pool().owns(values.data()));
}

TEST(Allocator, NodeContainersRebindToThePool) {
    MemoryPool pool;
    {
        std::map<int, int, std::less<>, Allocator<std::pair<const int, int>>> ordered(pool);
        std::unordered_map<int, int, std::hash<int>, std::equal_to<>,
                           Allocator<std::pair<const int, int>>>
            hashed(pool);
        std::list<int, Allocator<int>> listed(pool);
        for (int i = 0; i < 1000; ++i) {
            ordered[i] = hashed[i] = i;
            listed.push_back(i);
        }
        EXPECT_TRUE(pool.owns(&ordered.at(500)));
        EXPECT_TRUE(pool.owns(&hashed.at(500)));
        EXPECT_TRUE(pool.owns(&listed.back()));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(Allocator, StringsUseThePool) {
    MemoryPool pool;
    using PooledString = std::basic_string<char, std::char_traits<char>, Allocator<char>>;
    const PooledString text(1000, 'x', pool);
    EXPECT_TRUE(pool.owns(text.data()));
}

TEST(Allocator, EqualIfThePoolIsTheSame) {
    MemoryPool one;
    MemoryPool other;
    EXPECT_EQ(Allocator<int>(one), Allocator<int>(one));
    EXPECT_EQ(Allocator<int>(one), Allocator<double>(one));
    EXPECT_NE(Allocator<int>(one), Allocator<int>(other));
    EXPECT_NE(Allocator<int>(one), Allocator<int>());
    EXPECT_EQ(Allocator<int>(), Allocator<int>(get_global_memory_pool()));
}

TEST(Allocator, OverAlignedElementsGetTheirAlignment) {
    MemoryPool pool;
    {
        PooledVector<Wide> values(pool);
        for (int i = 0; i < 40; ++i) {
            values.emplace_back();
            EXPECT_TRUE(is_aligned(values.data(), alignof(Wide)));
        }
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(Allocator, OverflowThrowsBadArrayNewLength) {
    MemoryPool pool;
    constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
    EXPECT_THROW(static_cast<void>(Allocator<double>(pool).allocate(max / sizeof(double) + 1)),
                 std::bad_array_new_length);
    EXPECT_THROW(static_cast<void>(Allocator<Wide>(pool).allocate(max)), std::bad_array_new_length);
    EXPECT_EQ(pool.get_allocation_count(), 0U);
}

TEST(Allocator, RefusedRequestThrowsAllocationError) {
    MemoryPool pool(PoolOptions{.max_allocation = 1 << 20});
    EXPECT_THROW(static_cast<void>(Allocator<char>(pool).allocate(2 << 20)), AllocationError);
}

TEST(Allocator, ZeroElementsTakeNoBlock) {
    MemoryPool pool;
    Allocator<int> allocator(pool);
    int* const none = allocator.allocate(0);
    EXPECT_EQ(none, nullptr);
    allocator.deallocate(none, 0);
    EXPECT_EQ(pool.get_allocation_count(), 0U);
}

TEST(Allocator, MoveAssignmentPropagatesThePoolAndMovesNoElement) {
    MemoryPool one;
    MemoryPool other;
    PooledVector<int> from(100, 7, one);
    PooledVector<int> to(10, 3, other);
    const int* const elements = from.data();
    to = std::move(from);
    EXPECT_EQ(to.data(), elements);
    EXPECT_EQ(&to.get_allocator().pool(), &one);
    EXPECT_EQ(other.get_total_allocated(), 0U);
}

TEST(Allocator, SwapExchangesThePools) {
    MemoryPool one;
    MemoryPool other;
    PooledVector<int> left(100, 7, one);
    PooledVector<int> right(10, 3, other);
    const int* const elements = left.data();
    swap(left, right);
    EXPECT_EQ(right.data(), elements);
    EXPECT_EQ(&right.get_allocator().pool(), &one);
    EXPECT_EQ(&left.get_allocator().pool(), &other);
}

TEST(Allocator, CopyAssignmentKeepsThePoolOfTheTarget) {
    MemoryPool one;
    MemoryPool other;
    const PooledVector<int> from(100, 7, one);
    PooledVector<int> to(other);
    to = from;
    EXPECT_EQ(to, from);
    EXPECT_TRUE(other.owns(to.data()));
}

TEST(Allocator, CopyConstructionUsesThePoolOfTheOriginal) {
    MemoryPool pool;
    const PooledVector<int> from(100, 7, pool);
    const PooledVector<int> copy(from);  // NOLINT: the test checks the copy
    EXPECT_TRUE(pool.owns(copy.data()));
}

}  // namespace
}  // namespace tensorpool
