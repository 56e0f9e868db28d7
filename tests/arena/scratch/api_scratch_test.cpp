// Tests of the public names only, as an outside program uses them.
#include <tensorpool/tensorpool.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <stdexcept>
#include <thread>
#include <type_traits>

#include "arena/api_test.hpp"

namespace {

using tensorpool::Context;
using tensorpool::Scratch;
using tensorpool::ScratchScope;

constexpr std::size_t mib = std::size_t{1} << 20U;
constexpr std::size_t gib = std::size_t{1} << 30U;

using namespace tensorpool::testing;

// The documented signatures.
static_assert(!std::is_copy_constructible_v<Scratch>);
static_assert(std::is_same_v<decltype(&Scratch::local), Scratch& (*)()>);
static_assert(std::is_same_v<decltype(std::declval<const Context&>().mark()), std::size_t>);
static_assert(!std::is_convertible_v<std::size_t, Context>);

TEST(ApiScratch, EachThreadHasItsOwnScratch) {
    Scratch& mine = Scratch::local();
    EXPECT_EQ(&mine, &Scratch::local());
    Scratch* theirs = nullptr;
    std::thread([&] {
        theirs = &Scratch::local();
        EXPECT_NE(theirs, &mine);
    }).join();
}

TEST(ApiScratch, ScratchScopeReleasesItsAllocations) {
    Scratch& scratch = Scratch::local();
    void* first = nullptr;
    {
        ScratchScope scope;
        first = scratch.allocate(1000);
        EXPECT_TRUE(is_aligned(first, 64));
        EXPECT_TRUE(is_aligned(scratch.allocate(10, 1024), 1024));
        ScratchScope named("api operator");
        std::memset(scratch.allocate(3 * mib), 1, 3 * mib);
        EXPECT_EQ(scratch.allocate(0), nullptr);
        EXPECT_TRUE(throws_invalid_argument([&] { scratch.allocate(1, 3); }));
        EXPECT_TRUE(throws_bad_alloc([&] { scratch.allocate(9 * gib); }));
    }
    ScratchScope warm;
    void* again = scratch.allocate(1000);
    ScratchScope inner;
    EXPECT_NE(scratch.allocate(1000), again);
}

TEST(ApiScratch, MatrixPackIsContiguousAndPaddedMatrixIsNot) {
    Scratch& scratch = Scratch::local();
    ScratchScope scope;
    auto* pack = static_cast<std::byte*>(scratch.allocate_matrix_pack(10, 100, 4));
    EXPECT_TRUE(is_aligned(pack, 64));
    std::memset(pack, 1, 10 * 100 * 4);
    const tensorpool::PaddedMatrix matrix = scratch.allocate_padded_matrix(64, 1024, 4);
    EXPECT_TRUE(is_aligned(matrix.data, 64));
    EXPECT_GE(matrix.row_bytes, 4096U);
    EXPECT_NE(matrix.row_bytes % 4096, 0U);
    std::memset(matrix.data, 2, matrix.row_bytes * 64);
    const std::size_t half = std::size_t{1} << 32U;
    EXPECT_TRUE(throws_bad_alloc([&] { scratch.allocate_matrix_pack(half, half, 4); }));
    EXPECT_TRUE(throws_bad_alloc([&] { scratch.allocate_padded_matrix(half, half, 4); }));
}

TEST(ApiScratch, ContextMarksAndReleases) {
    Context context;
    EXPECT_GE(context.capacity(), 8 * mib);
    const std::size_t mark = context.mark();
    EXPECT_EQ(mark, context.used());
    void* first = context.alloc(100);
    EXPECT_TRUE(is_aligned(first, 64));
    EXPECT_EQ(context.alloc(0), nullptr);
    EXPECT_GE(context.used(), 100U);
    const std::size_t ahead = context.mark();
    context.release_to(mark);
    EXPECT_EQ(context.used(), 0U);
    EXPECT_TRUE(throws_invalid_argument([&] { context.release_to(ahead); }));
    EXPECT_EQ(context.used(), 0U);
    EXPECT_EQ(context.alloc(100), first);
    EXPECT_TRUE(throws_bad_alloc([&] { context.alloc(9 * gib); }));
    context.reset();
    EXPECT_EQ(context.used(), 0U);
    context.reserve_arena(20 * mib);
    EXPECT_GE(context.capacity(), 20 * mib);
}

TEST(ApiScratch, ContextUsesTheScratchOfTheThread) {
    Context context(mib, 128);
    Context neighbour(mib);
    context.scratch_reset();
    EXPECT_EQ(context.scratch_used(), 0U);
    void* first = context.scratch_alloc(1000);
    EXPECT_TRUE(is_aligned(first, 128));
    EXPECT_EQ(context.scratch_alloc(0), nullptr);
    EXPECT_NE(neighbour.scratch_alloc(1000), first);
    EXPECT_GE(neighbour.scratch_used(), 2000U);
    EXPECT_GE(context.scratch_capacity(), context.scratch_used());
    std::memset(context.scratch_alloc_matrix_pack(8, 8, 4), 0, 256);
    context.save_scratch();
    void* computed = context.scratch_alloc(500);
    context.restore_scratch();
    EXPECT_EQ(context.scratch_alloc(500), computed);
    context.restore_scratch();
    {
        ScratchScope scope;
        EXPECT_THROW(context.scratch_reset(), std::logic_error);
    }
    context.scratch_reset();
    EXPECT_EQ(context.scratch_used(), 0U);
}

}  // namespace
