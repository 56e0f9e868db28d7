#include <tensorpool/pooled_pointer.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace tensorpool {
namespace {

/// Counts its live objects.
struct Counted {
    explicit Counted(int& count) : count_(count) { ++count_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;
    ~Counted() { --count_; }

private:
    int& count_;
};

struct Throwing {
    Throwing() { throw std::runtime_error("thrown"); }
};

struct alignas(512) Wide {
    float lanes[128];
};

struct First {
    virtual ~First() = default;
    std::array<int, 10> values{};
};
struct Second {
    virtual ~Second() = default;
    int value = 2;
};
struct Both : First, Second {
    explicit Both(int& count) : counted(count) {}
    Counted counted;
};

struct NeedsAPool {
    NeedsAPool(MemoryPool& its_pool, int its_value) : pool(&its_pool), value(its_value) {}
    MemoryPool* pool;
    int value;
};

TEST(PooledUnique, ObjectIsInThePoolUntilItsOwnerIsDestroyed) {
    MemoryPool pool;
    int alive = 0;
    {
        const auto object = make_pooled_unique<Counted>(pool, alive);
        EXPECT_EQ(alive, 1);
        EXPECT_TRUE(pool.owns(object.get()));
        EXPECT_EQ(&object.get_deleter().pool(), &pool);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledUnique, DefaultUsesTheGlobalPool) {
    const auto object = make_pooled_unique<std::pair<int, std::string>>(7, "seven");
    EXPECT_EQ(object->first, 7);
    EXPECT_EQ(object->second, "seven");
    EXPECT_TRUE(get_global_memory_pool().owns(object.get()));
}

TEST(PooledUnique, ThrowingConstructorLeavesNothingBehind) {
    MemoryPool pool;
    EXPECT_THROW(static_cast<void>(make_pooled_unique<Throwing>(pool)), std::runtime_error);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
    EXPECT_EQ(pool.get_allocation_count(), pool.get_deallocation_count());
}

TEST(PooledUnique, OverAlignedObjectsGetTheirAlignment) {
    MemoryPool pool;
    {
        const auto object = make_pooled_unique<Wide>(pool);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object.get()) % alignof(Wide), 0U);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledUnique, FreesTheWholeBlockThroughABaseAtAnOffset) {
    MemoryPool pool;
    int alive = 0;
    {
        std::unique_ptr<Second, PoolDeleter> base = make_pooled_unique<Both>(pool, alive);
        EXPECT_EQ(base->value, 2);
        EXPECT_EQ(pool.usable_size(base.get()), 0U);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledUnique, PoolForTheConstructorIsPassedTwice) {
    MemoryPool pool;
    const auto object = make_pooled_unique<NeedsAPool>(pool, pool, 7);
    EXPECT_TRUE(pool.owns(object.get()));
    EXPECT_EQ(object->pool, &pool);
    EXPECT_EQ(object->value, 7);
}

TEST(PooledUnique, ArrayIsValueInitialised) {
    MemoryPool pool;
    void* const dirty = pool.allocate(4000);
    std::fill_n(static_cast<char*>(dirty), 4000, 'x');
    pool.deallocate(dirty, 4000);
    {
        const auto values = make_pooled_unique<float[]>(pool, 1000);
        EXPECT_TRUE(pool.owns(values.get()));
        EXPECT_TRUE(std::all_of(&values[0], &values[1000], [](float v) { return v == 0.0F; }));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledUnique, EmptyArrayOwnsNothing) {
    EXPECT_EQ(make_pooled_unique<float[]>(0), nullptr);
}

TEST(PooledUnique, OverflowingArrayThrows) {
    EXPECT_THROW(static_cast<void>(make_pooled_unique<double[]>(SIZE_MAX / 4)),
                 std::bad_array_new_length);
}

TEST(PoolDeleter, FreesABlockThatThePoolAllocated) {
    MemoryPool pool;
    {
        const std::unique_ptr<float[], PoolDeleter> values(static_cast<float*>(pool.allocate(4000)),
                                                           pool);
        const std::unique_ptr<void, PoolDeleter> bytes(pool.allocate(100'000, 4096), pool);
        EXPECT_GE(pool.get_total_allocated(), 104'000U);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PoolDeleter, ResetFreesTheOldBlock) {
    MemoryPool pool;
    std::unique_ptr<void, PoolDeleter> block(pool.allocate(100), pool);
    block.reset(pool.allocate(1000));
    EXPECT_EQ(pool.get_allocation_count() - pool.get_deallocation_count(), 1U);
    block.reset();
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledShared, ObjectAndCountsShareOneBlockOfThePool) {
    MemoryPool pool;
    int alive = 0;
    {
        auto object = allocate_pooled_shared<Counted>(pool, alive);
        const auto second_owner = object;
        object.reset();
        EXPECT_EQ(alive, 1);
        EXPECT_TRUE(pool.owns(second_owner.get()));
        EXPECT_EQ(pool.get_allocation_count(), 1U);
    }
    EXPECT_EQ(alive, 0);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledShared, DefaultUsesTheGlobalPool) {
    const auto object = allocate_pooled_shared<std::string>(100, 'x');
    EXPECT_EQ(object->size(), 100U);
    EXPECT_TRUE(get_global_memory_pool().owns(object.get()));
}

TEST(PooledShared, ThrowingConstructorLeavesNothingBehind) {
    MemoryPool pool;
    EXPECT_THROW(static_cast<void>(allocate_pooled_shared<Throwing>(pool)), std::runtime_error);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledShared, OverAlignedObjectsGetTheirAlignment) {
    MemoryPool pool;
    {
        const auto object = allocate_pooled_shared<Wide>(pool);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(object.get()) % alignof(Wide), 0U);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledShared, ArrayDestroysItsElements) {
    MemoryPool pool;
    {
        const auto lines =
            allocate_pooled_shared<std::string[]>(pool, std::size_t{10}, std::string(100, 'x'));
        EXPECT_EQ(lines[9].size(), 100U);
        EXPECT_TRUE(pool.owns(&lines[9]));
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

}  // namespace
}  // namespace tensorpool
