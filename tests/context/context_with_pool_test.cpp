// A context with its pool.

#include <tensorpool/context.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pooled_allocation.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

namespace tensorpool {
namespace {

constexpr std::size_t kib = 1024;

/// A context with a pool of its own, so that other tests do not count.
class ContextWithPool : public ::testing::Test {
protected:
    ContextOptions options() {
        ContextOptions options;
        options.pool = &pool_;
        return options;
    }

    MemoryPool pool_;
    Context context_{options()};
};

TEST_F(ContextWithPool, TakesSmallBlocksFromThePoolAndLargeOnesFromTheArena) {
    void* const small = context_.allocate(64 * kib);
    EXPECT_TRUE(pool_.owns(small));
    EXPECT_EQ(context_.used(), 0U);
    void* const large = context_.allocate(64 * kib + 1);
    EXPECT_FALSE(pool_.owns(large));
    EXPECT_EQ(context_.used(), 64 * kib + 64);
    EXPECT_EQ(pool_.get_total_allocated(), 64 * kib);
    context_.deallocate(small, 64 * kib);
    context_.deallocate(large, 64 * kib + 1);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    EXPECT_EQ(context_.used(), 64 * kib + 64) << "a block of the arena stays until a release";
    context_.reset();
    EXPECT_EQ(context_.used(), 0U);
}

TEST_F(ContextWithPool, NothingIsAllocatedForNoBytes) {
    EXPECT_EQ(context_.allocate(0), nullptr);
    context_.deallocate(nullptr, 0);
    context_.deallocate(nullptr, 100);
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
}

TEST_F(ContextWithPool, AllocAndMarksConcernTheArenaAlone) {
    const std::size_t mark = context_.mark();
    void* const from_arena = context_.alloc(100);
    EXPECT_FALSE(pool_.owns(from_arena));
    void* const from_pool = context_.allocate(100);
    EXPECT_EQ(context_.used(), 128U);
    context_.release_to(mark);
    EXPECT_TRUE(pool_.owns(from_pool)) << "a release leaves the pool's blocks alone";
    context_.deallocate(from_pool, 100);
}

TEST_F(ContextWithPool, AnotherThreadMayFreeASmallBlock) {
    void* const block = context_.allocate(1000);
    std::thread([&] { context_.deallocate(block, 1000); }).join();
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(ContextWithPool, TheThresholdIsAnOption) {
    for (const std::size_t threshold : {std::size_t{0}, kib, 1024 * kib}) {
        ContextOptions options = this->options();
        options.small_bytes = threshold;
        Context context(options);
        for (const std::size_t bytes : {std::size_t{1}, kib, kib + 1, 1024 * kib}) {
            void* const block = context.allocate(bytes);
            EXPECT_EQ(pool_.owns(block), bytes <= threshold) << threshold << ' ' << bytes;
            context.deallocate(block, bytes);
        }
        EXPECT_EQ(pool_.get_total_allocated(), 0U) << threshold;
    }
}

TEST_F(ContextWithPool, AllBlocksHaveItsAlignment) {
    ContextOptions options = this->options();
    options.arena.alignment = 4 * kib;
    Context context(options);
    for (const std::size_t bytes : {std::size_t{1}, 5000 * std::size_t{1}, 100 * kib}) {
        void* const block = context.allocate(bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % (4 * kib), 0U) << bytes;
        context.deallocate(block, bytes);
        const PooledAllocation handle(context, bytes);
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(handle.get()) % (4 * kib), 0U) << bytes;
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(ContextWithPool, HandlesTakeFromWhereAllocateWould) {
    {
        PooledAllocation small(context_, 1000);
        EXPECT_TRUE(pool_.owns(small.get()));
        PooledAllocation large(context_, 100 * kib);
        EXPECT_FALSE(pool_.owns(large.get()));
        EXPECT_EQ(context_.used(), 100 * kib);
        const PooledAllocation moved = std::move(small);
        EXPECT_EQ(pool_.get_total_allocated(), kib);
    }
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    EXPECT_EQ(context_.used(), 0U) << "the block at the top is returned";
    EXPECT_FALSE(PooledAllocation(context_, 0));
    EXPECT_THROW(PooledAllocation(context_, 100, 48), std::invalid_argument);
}

TEST_F(ContextWithPool, FailureOfThePoolChangesNothing) {
    pool_.set_max_capacity(1);
    EXPECT_THROW(context_.allocate(1000), AllocationError);
    EXPECT_THROW(PooledAllocation(context_, 1000), AllocationError);
    EXPECT_EQ(context_.used(), 0U);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
    pool_.set_max_capacity(0);
}

TEST(Context, TakesSmallBlocksFromTheGlobalPoolByDefault) {
    Context context;
    EXPECT_EQ(&context.pool(), &get_global_memory_pool());
    void* const block = context.allocate(100);
    EXPECT_TRUE(get_global_memory_pool().owns(block));
    context.deallocate(block, 100);
}

TEST(Context, MeasuringCountsTheLargeBlocksAlone) {
    Context context = Context::measuring();
    void* const small = context.allocate(1000);
    context.allocate(100 * kib);
    EXPECT_EQ(context.peak(), 100 * kib);
    context.deallocate(small, 1000);
}

// Statistics ------------------------------------------------------------------------------------

TEST_F(ContextWithPool, StatisticsAreThoseOfItsThreeParts) {
    std::thread([this] {
        EXPECT_EQ(context_.statistics().scratch.id, 0U) << "this thread has no scratch yet";
        void* const block = context_.allocate(1000);
        context_.allocate(100 * kib);
        const ScratchScope scope(context_.scratch());
        context_.scratch_alloc(5000);
        const ContextStatistics values = context_.statistics();
        EXPECT_EQ(values.pool.in_use_bytes, kib);
        EXPECT_EQ(values.pool.allocations, 1U);
        EXPECT_EQ(values.arena.used_bytes, 100 * kib);
        EXPECT_EQ(values.arena.allocations, 1U);
        EXPECT_EQ(values.scratch.used_bytes, 5056U);
        EXPECT_EQ(values.scratch.allocations, 1U);
        EXPECT_NEAR(values.pool.utilization_ratio(), pool_.get_utilization_ratio(), 1e-9);
        EXPECT_NEAR(values.arena.utilization_ratio(), 100.0 / (8 * 1024), 1e-9);
        EXPECT_GT(values.scratch.utilization_ratio(), 0.0);
        EXPECT_EQ(ArenaStatistics().utilization_ratio(), 0.0);
        context_.deallocate(block, 1000);
    }).join();
}

TEST_F(ContextWithPool, StatisticsAreJsonAndText) {
    context_.scratch();
    const ContextStatistics values = context_.statistics();
    const std::string json = to_json(values);
    EXPECT_EQ(json, "{\"pool\":" + to_json(values.pool) + ",\"arena\":" + to_json(values.arena) +
                        ",\"scratch\":" + to_json(values.scratch) + "}");
    EXPECT_EQ(to_text(values),
              to_text(values.pool) + to_text(values.arena) + to_text(values.scratch));
    ContextStatistics without = values;
    without.scratch = {};
    EXPECT_EQ(to_text(without), to_text(values.pool) + to_text(values.arena));
}

// ScratchAllocationScope ------------------------------------------------------------------------

TEST_F(ContextWithPool, BlocksInAScratchAllocationScopeComeFromTheScratch) {
    const std::size_t before = context_.scratch_used();
    {
        const ScratchAllocationScope scope(context_, "softmax");
        void* const small = context_.allocate(1000);
        void* const large = context_.allocate(100 * kib);
        EXPECT_FALSE(pool_.owns(small));
        EXPECT_NE(large, nullptr);
        EXPECT_EQ(context_.scratch_used(), before + 1024 + 100 * kib);
        EXPECT_EQ(context_.used(), 0U);
        context_.deallocate(small, 1000);
        context_.deallocate(large, 100 * kib);
        EXPECT_EQ(context_.scratch_used(), before + 1024 + 100 * kib) << "they stay until its end";
    }
    EXPECT_EQ(context_.scratch_used(), before);
    EXPECT_EQ(pool_.get_allocation_count(), 0U);
    void* const block = context_.allocate(1000);
    EXPECT_TRUE(pool_.owns(block));
    context_.deallocate(block, 1000);
}

TEST_F(ContextWithPool, BlockOfThePoolIsFreedInAScratchAllocationScope) {
    void* const block = context_.allocate(1000);
    const ScratchAllocationScope scope(context_);
    context_.deallocate(block, 1000);
    EXPECT_EQ(pool_.get_total_allocated(), 0U);
}

TEST_F(ContextWithPool, BlockOfAScratchInABlockOfThePoolIsNotFreed) {
    constexpr std::size_t bytes = 4 * kib;
    auto* const buffer = static_cast<std::byte*>(pool_.allocate(bytes));
    context_.use_scratch({buffer, bytes});
    {
        const ScratchAllocationScope scope(context_);
        void* const block = context_.allocate(1000);
        EXPECT_EQ(block, buffer);
        context_.deallocate(block, 1000);
        EXPECT_EQ(pool_.get_total_allocated(), bytes);
        void* const next = pool_.allocate(1000);
        EXPECT_NE(next, block);
        pool_.deallocate(next, 1000);
    }
    context_.use_scratch({});
    pool_.deallocate(buffer, bytes);
}

TEST_F(ContextWithPool, BlocksInAllChunksOfAScratchAreNotFreed) {
    const ScratchAllocationScope scope(context_);
    void* const first = context_.allocate(1000);
    context_.scratch_alloc(context_.scratch_capacity());
    void* const last = context_.allocate(1000);
    context_.deallocate(first, 1000);
    context_.deallocate(last, 1000);
    EXPECT_EQ(pool_.get_deallocation_count(), 0U);
}

TEST_F(ContextWithPool, ScratchAllocationScopeConcernsItsContextAndThread) {
    Context other(options());
    const ScratchAllocationScope outer(context_);
    const ScratchAllocationScope inner(other);
    void* const temporary = context_.allocate(100);
    EXPECT_FALSE(pool_.owns(temporary)) << "an outer scope still holds";
    EXPECT_FALSE(pool_.owns(other.allocate(100)));
    Context third(options());
    void* const block = third.allocate(100);
    EXPECT_TRUE(pool_.owns(block));
    third.deallocate(block, 100);
    std::thread([this] {
        void* const of_thread = context_.allocate(100);
        EXPECT_TRUE(pool_.owns(of_thread));
        context_.deallocate(of_thread, 100);
    }).join();
}

TEST_F(ContextWithPool, HandlesInAScratchAllocationScopeReturnTheirBlocks) {
    const ScratchAllocationScope scope(context_);
    const std::size_t before = context_.scratch_used();
    {
        const PooledAllocation one(context_, 1000);
        const PooledAllocation other(context_, 100 * kib);
        EXPECT_GT(context_.scratch_used(), before);
    }
    EXPECT_EQ(context_.scratch_used(), before);
}

}  // namespace
}  // namespace tensorpool
