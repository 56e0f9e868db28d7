// The arena of a context. Its scratch is tested in context_scratch_test.cpp.

#include <tensorpool/context.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

TEST(Context, StartsEmptyWith8Mebibytes) {
    const Context context;
    EXPECT_EQ(context.capacity(), 8 * mib);
    EXPECT_EQ(context.used(), 0U);
    EXPECT_EQ(context.peak(), 0U);
    EXPECT_EQ(context.alignment(), 64U);
    EXPECT_EQ(context.arena().name(), "context");
}

TEST(Context, StartsWithTheGivenSizeAndAlignment) {
    Context context(mib, 256);
    EXPECT_EQ(context.capacity(), mib);
    EXPECT_EQ(context.alignment(), 256U);
    EXPECT_TRUE(is_aligned(context.alloc(1), 256));
    EXPECT_TRUE(is_aligned(context.alloc(1), 256));
    EXPECT_EQ(context.used(), 512U);
}

TEST(Context, ArenaAndScratchShareTheAlignment) {
    in_new_thread([] {
        for (std::size_t alignment = 64; alignment <= 16 * kib; alignment *= 2) {
            Context context(mib, alignment);
            for (const std::size_t bytes : {1U, 63U, 100U, 5000U}) {
                EXPECT_TRUE(is_aligned(context.alloc(bytes), alignment));
                EXPECT_TRUE(is_aligned(context.scratch_alloc(bytes), alignment));
                EXPECT_TRUE(is_aligned(context.scratch_alloc_matrix_pack(bytes, 3, 2), alignment));
            }
        }
    });
}

TEST(Context, AlignmentMustBeAPowerOfTwo) {
    std::array<std::byte, 100> buffer;
    for (const std::size_t alignment : {0U, 3U, 65U, 96U}) {
        EXPECT_THROW(Context(mib, alignment), std::invalid_argument) << alignment;
        EXPECT_THROW(Context(std::span(buffer), alignment), std::invalid_argument) << alignment;
    }
}

TEST(Context, ZeroBytesReturnNullFromBoth) {
    Context context;
    EXPECT_EQ(context.alloc(0), nullptr);
    EXPECT_EQ(context.scratch_alloc(0), nullptr);
    EXPECT_EQ(context.scratch_alloc_matrix_pack(0, 10, 4), nullptr);
    EXPECT_EQ(context.used(), 0U);
}

TEST(Context, RequestAboveMaxAllocationIsRefusedByBoth) {
    Context context;
    for (const std::size_t bytes : {8 * gib + 1, SIZE_MAX - 63, SIZE_MAX}) {
        EXPECT_THROW(context.alloc(bytes), AllocationError);
        EXPECT_THROW(context.scratch_alloc(bytes), AllocationError);
        EXPECT_THROW(context.scratch_alloc_matrix_pack(bytes, 1, 1), AllocationError);
    }
    EXPECT_THROW(context.scratch_alloc_matrix_pack(SIZE_MAX, SIZE_MAX, 4), AllocationError);
    EXPECT_EQ(context.used(), 0U);
    EXPECT_EQ(context.capacity(), 8 * mib);
}

TEST(Context, MarkEqualsUsed) {
    Context context;
    EXPECT_EQ(context.mark(), 0U);
    for (std::size_t bytes = 1; bytes < mib; bytes = bytes * 3 + 1) {
        context.alloc(bytes);
        EXPECT_EQ(context.mark(), context.used());
        EXPECT_GE(context.used(), bytes);
    }
}

TEST(Context, ReleaseEndsAllocationsAfterTheMark) {
    Context context;
    void* const kept = fill(context.alloc(1000), 1000, 1);
    const std::size_t mark = context.mark();
    void* const first = context.alloc(1000);
    for (int round = 0; round < 3; ++round) {
        context.release_to(mark);
        EXPECT_EQ(context.used(), mark);
        EXPECT_EQ(context.alloc(1000), first);
        fill(context.alloc(20 * mib), 20 * mib, 2);
    }
    EXPECT_TRUE(is_filled(kept, 1000, 1));
    EXPECT_EQ(context.peak(), 20 * mib + 2048);
    context.release_to(context.mark());
    context.reset();
    EXPECT_EQ(context.used(), 0U);
    EXPECT_EQ(context.alloc(1), kept);
}

TEST(Context, MarkAheadOfTheArenaIsRefused) {
    Context context;
    void* const block = fill(context.alloc(1000), 1000, 1);
    const std::size_t mark = context.mark();
    context.alloc(1000);
    const std::size_t ahead = context.mark();
    context.release_to(mark);
    for (const std::size_t bad : {ahead, mark + 1, SIZE_MAX}) {
        EXPECT_THROW(context.release_to(bad), std::invalid_argument);
        EXPECT_EQ(context.used(), mark);
    }
    EXPECT_TRUE(is_filled(block, 1000, 1));
    context.release_to(mark);
}

TEST(Context, ReservedArenaDoesNotGrow) {
    Context context(mib);
    context.reserve_arena(30 * mib);
    const std::size_t capacity = context.capacity();
    EXPECT_GE(capacity, 30 * mib);
    context.alloc(30 * mib);
    EXPECT_EQ(context.capacity(), capacity);
    EXPECT_THROW(context.reserve_arena(SIZE_MAX), AllocationError);
    EXPECT_EQ(context.capacity(), capacity);
}

TEST(Context, ArenaServesSeveralThreads) {
    Context context(mib);
    std::vector<std::thread> threads;
    std::array<std::vector<void*>, 4> blocks;
    for (std::size_t number = 0; number < blocks.size(); ++number) {
        threads.emplace_back([&, number] {
            for (std::size_t i = 0; i < 500; ++i) {
                blocks[number].push_back(fill(context.alloc(1000 + i), 1000 + i, number * 500 + i));
                const ScratchScope scope;
                fill(context.scratch_alloc(10'000), 10'000, i);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t number = 0; number < blocks.size(); ++number) {
        for (std::size_t i = 0; i < 500; ++i) {
            ASSERT_TRUE(is_filled(blocks[number][i], 1000 + i, number * 500 + i));
        }
    }
}

TEST(Context, OverABufferNeverGrows) {
    alignas(64) std::array<std::byte, 4096> buffer;
    Context context(buffer);
    EXPECT_EQ(context.capacity(), 4096U);
    EXPECT_EQ(context.alloc(4000), buffer.data());
    EXPECT_THROW(context.alloc(100), AllocationError);
    EXPECT_EQ(context.used(), 4032U);
    context.reset();
    EXPECT_EQ(context.alloc(100), buffer.data());
    Context in_part(std::span<std::byte>(buffer).subspan(1, 1000), 256);
    EXPECT_TRUE(is_aligned(in_part.alloc(1), 256));
}

TEST(Context, SeveralContextsShareABufferInTurns) {
    alignas(64) std::array<std::byte, 4096> buffer;
    for (std::size_t turn = 0; turn < 3; ++turn) {
        Context context(buffer);
        void* const block = fill(context.alloc(4096), 4096, turn);
        EXPECT_EQ(block, buffer.data());
        EXPECT_TRUE(is_filled(block, 4096, turn));
    }
    Context one(buffer);
    Context other(buffer);
    for (std::size_t turn = 0; turn < 3; ++turn) {
        EXPECT_EQ(one.alloc(3000), buffer.data());
        one.reset();
        EXPECT_EQ(other.alloc(4000), buffer.data());
        other.reset();
    }
}

TEST(Context, TakesOptionsOfAnArena) {
    ArenaOptions options;
    options.name = "phases";
    options.initial_capacity = mib;
    options.max_capacity = 2 * mib;
    options.max_allocation = 512 * kib;
    options.alignment = 128;
    Context context(options);
    EXPECT_EQ(context.arena().name(), "phases");
    EXPECT_EQ(context.alignment(), 128U);
    EXPECT_THROW(context.alloc(512 * kib + 1), AllocationError);
    for (int i = 0; i < 4; ++i) context.alloc(512 * kib);
    EXPECT_THROW(context.alloc(1), AllocationError);
    EXPECT_TRUE(is_aligned(context.scratch_alloc(1), 128));
}

TEST(Context, MeasuringPredictsTheArenaOfARealContext) {
    const auto run = [](Context& context) {
        const std::size_t before = context.mark();
        for (std::size_t bytes = 1; bytes < 2 * mib; bytes *= 3) context.alloc(bytes);
        context.release_to(before);
    };
    Context measured = Context::measuring();
    run(measured);
    EXPECT_EQ(measured.capacity(), 0U);
    Context context(0);
    context.reserve_arena(measured.peak());
    const std::uint64_t growths = context.arena().statistics().growths;
    run(context);
    EXPECT_EQ(context.arena().statistics().growths, growths);
    EXPECT_EQ(context.peak(), measured.peak());
}

TEST(Context, MeasuringWithObjectsHasRealHeaders) {
    Context context = Context::measuring({.name = "graph", .alignment = 32, .objects = true});
    EXPECT_EQ(context.alignment(), 32U);
    const AllocatedObject tensor = context.arena().allocate_object(
        {.name = "w", .kind = "tensor", .bytes = std::size_t{1} << 30}, sizeof(int));
    *static_cast<int*>(tensor.header) = 7;
    const std::size_t mark = context.mark();
    (void)context.alloc(100);
    EXPECT_EQ(context.peak(), (std::size_t{1} << 30) + 128);
    context.release_to(mark);
    ASSERT_EQ(context.arena().objects().size(), 1U);
    EXPECT_EQ(*static_cast<int*>(context.arena().objects()[0].header), 7);
}

}  // namespace
}  // namespace tensorpool
