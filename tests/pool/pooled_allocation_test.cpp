#include <tensorpool/pooled_allocation.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory_resource>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace tensorpool {
namespace {

static_assert(!std::is_copy_constructible_v<PooledAllocation>);
static_assert(!std::is_copy_assignable_v<PooledAllocation>);
static_assert(std::is_nothrow_move_constructible_v<PooledAllocation>);
static_assert(std::is_nothrow_move_assignable_v<PooledAllocation>);
static_assert(!std::is_convertible_v<std::size_t, PooledAllocation>);
static_assert(!std::is_convertible_v<PooledAllocation, bool>);

std::size_t blocks_in_use(const MemoryPool& pool) {
    return pool.get_allocation_count() - pool.get_deallocation_count();
}

TEST(PooledAllocation, OwnsItsBlockForItsLifetime) {
    MemoryPool pool;
    {
        const PooledAllocation block(pool, 1000);
        ASSERT_TRUE(block);
        EXPECT_EQ(block.size(), 1000U);
        EXPECT_TRUE(pool.owns(block.get()));
        EXPECT_EQ(blocks_in_use(pool), 1U);
    }
    EXPECT_EQ(blocks_in_use(pool), 0U);
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledAllocation, WithoutAPoolUsesTheGlobalOne) {
    const PooledAllocation block(100);
    EXPECT_TRUE(get_global_memory_pool().owns(block.get()));
}

TEST(PooledAllocation, ZeroBytesOwnsNothing) {
    MemoryPool pool;
    const PooledAllocation none;
    const PooledAllocation zero(pool, 0);
    EXPECT_FALSE(none);
    EXPECT_FALSE(zero);
    EXPECT_EQ(zero.get(), nullptr);
    EXPECT_EQ(zero.size(), 0U);
    EXPECT_TRUE(zero.as<float>().empty());
    EXPECT_EQ(pool.get_allocation_count(), 0U);
}

TEST(PooledAllocation, EveryAlignmentIsHonoredAndFreed) {
    MemoryPool pool;
    for (std::size_t alignment = 1; alignment <= 65'536; alignment *= 2) {
        const PooledAllocation block(pool, 100, alignment);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % alignment, 0U);
    }
    EXPECT_EQ(pool.get_total_allocated(), 0U);
}

TEST(PooledAllocation, ThrowsWhatThePoolThrows) {
    MemoryPool pool(PoolOptions{.max_allocation = 1 << 20});
    EXPECT_THROW(PooledAllocation(pool, 2 << 20), AllocationError);
    EXPECT_THROW(PooledAllocation(pool, 100, 48), std::invalid_argument);
    EXPECT_EQ(blocks_in_use(pool), 0U);
}

TEST(PooledAllocation, MoveTransfersTheBlock) {
    MemoryPool pool;
    PooledAllocation from(pool, 1000, 4096);
    void* const block = from.get();
    PooledAllocation to(std::move(from));
    EXPECT_EQ(to.get(), block);
    EXPECT_EQ(to.size(), 1000U);
    EXPECT_FALSE(from);  // NOLINT(bugprone-use-after-move): the moved-from state is specified
    EXPECT_EQ(from.size(), 0U);
    EXPECT_EQ(blocks_in_use(pool), 1U);
}

TEST(PooledAllocation, MoveAssignmentFreesTheOldBlock) {
    MemoryPool one;
    MemoryPool other;
    PooledAllocation from(one, 1000);
    PooledAllocation to(other, 100, 256);
    void* const block = from.get();
    to = std::move(from);
    EXPECT_EQ(to.get(), block);
    EXPECT_EQ(blocks_in_use(one), 1U);
    EXPECT_EQ(blocks_in_use(other), 0U);
    to = PooledAllocation();
    EXPECT_EQ(blocks_in_use(one), 0U);
}

TEST(PooledAllocation, SelfAssignmentHasNoEffect) {
    MemoryPool pool;
    PooledAllocation block(pool, 1000);
    void* const address = block.get();
    PooledAllocation& same = block;
    block = std::move(same);
    EXPECT_EQ(block.get(), address);
    EXPECT_EQ(block.size(), 1000U);
    EXPECT_EQ(blocks_in_use(pool), 1U);
}

TEST(PooledAllocation, SwapExchangesBlocksAndTheirPools) {
    MemoryPool one;
    MemoryPool other;
    {
        PooledAllocation left(one, 1000);
        PooledAllocation right(other, 100, 256);
        void* const block = left.get();
        left.swap(right);
        EXPECT_EQ(right.get(), block);
        EXPECT_EQ(right.size(), 1000U);
        EXPECT_EQ(left.size(), 100U);
        EXPECT_TRUE(other.owns(left.get()));
    }
    EXPECT_EQ(blocks_in_use(one), 0U);
    EXPECT_EQ(blocks_in_use(other), 0U);
}

TEST(PooledAllocation, ReleasePassesOwnershipToTheCaller) {
    MemoryPool pool;
    void* block = nullptr;
    {
        PooledAllocation owner(pool, 1000, 256);
        block = owner.release();
        EXPECT_FALSE(owner);
        EXPECT_EQ(owner.size(), 0U);
    }
    EXPECT_TRUE(pool.owns(block));
    pool.deallocate(block);
    EXPECT_EQ(blocks_in_use(pool), 0U);
}

TEST(PooledAllocation, ResetFreesTheBlockOnce) {
    MemoryPool pool;
    PooledAllocation block(pool, 1000);
    block.reset();
    EXPECT_FALSE(block);
    EXPECT_EQ(block.size(), 0U);
    block.reset();
    EXPECT_EQ(pool.get_deallocation_count(), 1U);
}

/// A source of the caller, which records the blocks that handles hold.
class CountingSource {
public:
    void* allocate(std::size_t bytes, std::size_t alignment) {
        if (bytes > 10'000) throw std::bad_alloc();
        void* const block = std::aligned_alloc(alignment, (bytes + alignment - 1) & -alignment);
        held[block] = {bytes, alignment};
        return block;
    }
    void deallocate(void* block, std::size_t bytes, std::size_t alignment) noexcept {
        EXPECT_EQ(held.at(block), std::pair(bytes, alignment));
        held.erase(block);
        std::free(block);
    }

    std::map<void*, std::pair<std::size_t, std::size_t>> held;
};

TEST(PooledAllocation, OwnsMemoryOfACallersSource) {
    CountingSource source;
    MemoryPool pool;
    {
        PooledAllocation block(source, 1000, 256);
        EXPECT_TRUE(source.held.contains(block.get()));
        EXPECT_EQ(block.host_pointer(), block.get());
        EXPECT_EQ(block.device(), SourceDevice{});
        EXPECT_EQ(block.as<float>().size(), 250U);
        PooledAllocation other(pool, 10);
        other.swap(block);
        block = std::move(other);
        EXPECT_EQ(source.held.size(), 1U);
        EXPECT_EQ(blocks_in_use(pool), 0U);
    }
    EXPECT_TRUE(source.held.empty());
    EXPECT_THROW(PooledAllocation(source, 20'000), std::bad_alloc);
    EXPECT_THROW(PooledAllocation(source, 100, 48), std::invalid_argument);
    EXPECT_FALSE(PooledAllocation(source, 0));
    EXPECT_TRUE(source.held.empty());
}

TEST(PooledAllocation, SourceThatReturnsNothingThrows) {
    struct Empty {
        void* allocate(std::size_t, std::size_t) { return nullptr; }
        void deallocate(void*, std::size_t, std::size_t) { FAIL() << "there is no block"; }
    };
    Empty empty;
    EXPECT_THROW(PooledAllocation(empty, 100), std::bad_alloc);
    EXPECT_FALSE(PooledAllocation(empty, 0));
}

TEST(PooledAllocation, OwnsMemoryOfAStandardResource) {
    std::pmr::unsynchronized_pool_resource resource;
    PooledAllocation block(static_cast<std::pmr::memory_resource&>(resource), 1000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 64, 0U);
}

TEST(PooledAllocation, DetachedBlockIsEndedByAnotherHandle) {
    MemoryPool pool;
    CountingSource source;
    for (const bool is_pool : {false, true}) {
        PooledAllocation first =
            is_pool ? PooledAllocation(pool, 100, 4096) : PooledAllocation(source, 100);
        const HeldBlock block = first.detach();
        EXPECT_FALSE(first);
        EXPECT_EQ(block.bytes, 100U);
        PooledAllocation second(block);
        EXPECT_EQ(second.get(), block.address);
    }
    EXPECT_EQ(blocks_in_use(pool), 0U);
    EXPECT_TRUE(source.held.empty());
}

TEST(PooledAllocation, SpanHoldsTheWholeElementsThatFit) {
    MemoryPool pool;
    const PooledAllocation block(pool, 1003);
    const std::span<float> floats = block.as<float>();
    EXPECT_EQ(floats.size(), 250U);
    floats.front() = 1.0F;
    floats.back() = 2.0F;
    EXPECT_EQ(block.as<const float>()[249], 2.0F);
    EXPECT_EQ(block.as<std::byte>().size(), 1003U);
}

TEST(PooledAllocation, DeviceIsTheOneOfItsSource) {
    constexpr SourceDevice device{.type = 2, .index = 3};
    static const SourceFunctions functions = {
        .name = "far",
        .give_back = [](void*, const HeldBlock&) {},
        .device = [](void* source) { return *static_cast<const SourceDevice*>(source); }};
    SourceDevice source = device;
    int memory = 0;
    const PooledAllocation far(HeldBlock{&memory, sizeof memory, {&source, functions, 64}});
    EXPECT_EQ(far.device(), device);
    MemoryPool pool;
    EXPECT_EQ(PooledAllocation(pool, 100).device(), SourceDevice{});
    EXPECT_EQ(PooledAllocation().device(), SourceDevice{});
}

}  // namespace
}  // namespace tensorpool
