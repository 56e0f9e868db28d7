#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "arena/scratch/scratch_tools.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using namespace testing;

TEST(ScratchScope, ReleasesItsAllocations) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* first = nullptr;
        {
            const ScratchScope scope;
            first = scratch.allocate(1000);
            EXPECT_EQ(scratch.used(), 1024U);
        }
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.peak(), 1024U);
        const ScratchScope scope(scratch);
        EXPECT_EQ(scratch.allocate(1), first);
    });
}

TEST(ScratchScope, NestedScopesReleaseOnlyTheirOwnAllocations) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope outer;
        void* const kept = fill(scratch.allocate(1000), 1000, 1);
        void* ended = nullptr;
        {
            const ScratchScope middle("ScratchScope.nested");
            fill(scratch.allocate(1000), 1000, 2);
            {
                const ScratchScope inner;
                ended = fill(scratch.allocate(1000), 1000, 3);
            }
            EXPECT_EQ(scratch.used(), 2048U);
            EXPECT_EQ(scratch.allocate(1), ended);
        }
        EXPECT_EQ(scratch.used(), 1024U);
        EXPECT_TRUE(is_filled(kept, 1000, 1));
    });
}

TEST(ScratchScope, PointersStayValidWhenTheScratchGrowsInside) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < 50; ++i) {
            blocks.push_back(fill(scratch.allocate(200 * kib), 200 * kib, i));
        }
        EXPECT_GT(scratch.statistics().growths, 3U);
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            EXPECT_TRUE(is_filled(blocks[i], 200 * kib, i)) << i;
        }
        EXPECT_EQ(scratch.used(), 50 * 200 * kib);
    });
}

/// Allocates more than the present capacity at each depth, and checks it after all deeper scopes
/// ended.
void grow_at_depth(Scratch& scratch, unsigned depth) {
    if (depth == 0) return;
    const ScratchScope scope;
    const std::size_t before = scratch.used();
    const std::size_t bytes = 300 * kib * depth;
    void* const one = fill(scratch.allocate(bytes), bytes, depth);
    grow_at_depth(scratch, depth - 1);
    EXPECT_EQ(scratch.used(), before + bytes);
    void* const other = fill(scratch.allocate(bytes), bytes, depth + 100);
    grow_at_depth(scratch, depth / 2);
    EXPECT_TRUE(is_filled(one, bytes, depth));
    EXPECT_TRUE(is_filled(other, bytes, depth + 100));
}

TEST(ScratchScope, PointersStayValidWhenTheScratchGrowsAtAnyDepth) {
    in_new_thread([] {
        grow_at_depth(Scratch::local(), 6);
        EXPECT_EQ(Scratch::local().used(), 0U);
        EXPECT_EQ(Scratch::local().statistics().give_backs, 1U);
    });
}

TEST(ScratchScope, ReturnsToTheChunkInWhichItBegan) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope outer;
        auto* const first = static_cast<std::byte*>(scratch.allocate(64));
        void* grown = nullptr;
        {
            const ScratchScope inner;
            grown = scratch.allocate(mib);
        }
        EXPECT_EQ(scratch.used(), 64U);
        EXPECT_EQ(scratch.allocate(64), first + 64);
        const ScratchScope again;
        EXPECT_EQ(scratch.allocate(mib), grown) << "the chained chunk is still there";
        EXPECT_EQ(scratch.statistics().growths, 2U);
    });
}

struct Step {
    std::size_t need;
    std::size_t joined;
};

class ScratchJoin : public ::testing::TestWithParam<Step> {};

INSTANTIATE_TEST_SUITE_P(Steps, ScratchJoin,
                         ::testing::Values(Step{1 * mib, 16 * mib}, Step{8 * mib, 16 * mib},
                                           Step{8 * mib + 64, 16 * mib + 128},
                                           Step{20 * mib, 40 * mib}, Step{64 * mib - 64, 128 * mib},
                                           Step{64 * mib, 192 * mib}, Step{100 * mib, 228 * mib},
                                           Step{512 * mib - 64, 640 * mib},
                                           Step{512 * mib, 576 * mib}, Step{600 * mib, 664 * mib}),
                         [](const auto& test) { return std::to_string(test.param.need); });

TEST_P(ScratchJoin, ChunksAreJoinedToTheSizeOfTheStep) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope outermost;
            scratch.allocate(64);
            {
                const ScratchScope inner;
                scratch.allocate(GetParam().need / 2);
            }
            EXPECT_NE(scratch.statistics().growths, 1U);
            EXPECT_EQ(scratch.statistics().give_backs, 0U) << "a block is in use";
            const ScratchScope inner;
            scratch.allocate(GetParam().need - 128);
            scratch.allocate(1);
            EXPECT_EQ(scratch.used(), GetParam().need);
        }
        EXPECT_EQ(scratch.capacity(), platform::whole_pages(GetParam().joined));
        const std::uint64_t growths = scratch.statistics().growths;
        const ScratchScope again;
        scratch.allocate(GetParam().need);
        EXPECT_EQ(scratch.statistics().growths, growths);
    });
}

TEST(ScratchScope, SufficientChunkStays) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        for (int round = 0; round < 3; ++round) {
            const ScratchScope scope("ScratchScope.enough");
            scratch.allocate(500 * kib);
        }
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_EQ(scratch.statistics().growths, 1U);
        EXPECT_EQ(scratch.statistics().give_backs, 0U);
    });
}

TEST(ScratchScope, NothingIsJoinedWhileABlockOutsideScopesIsInUse) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* const outside = fill(scratch.allocate(100), 100, 1);
        {
            const ScratchScope scope;
            scratch.allocate(3 * mib);
        }
        EXPECT_EQ(scratch.statistics().give_backs, 0U);
        EXPECT_TRUE(is_filled(outside, 100, 1));
        scratch.reset();
        EXPECT_EQ(scratch.capacity(), 16 * mib);
        EXPECT_EQ(scratch.statistics().give_backs, 1U);
    });
}

TEST(ScratchScope, ChangesNothingWithoutAllocations) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        for (int round = 0; round < 3; ++round) {
            const ScratchScope scope;
            const ScratchScope named("ScratchScope.empty");
            const ScratchScope without_a_name("");
        }
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.peak(), 0U);
        EXPECT_EQ(scratch.statistics().growths, 1U);
    });
}

TEST(ScratchScopeDeathTest, EndingOutOfOrderStopsTheProgram) {
    auto outer = std::make_unique<ScratchScope>();
    const ScratchScope inner;  // destroyed first
    EXPECT_DEATH(outer.reset(),
                 "fatal: scope-order .*\n  ScratchScope: scope '' of thread [0-9]+ ended before "
                 "one that began "
                 "inside it");
}

TEST(ScratchScopeDeathTest, EndingANamedScopeOutOfOrderStopsTheProgram) {
    auto outer = std::make_unique<ScratchScope>("ScratchScope.outer");
    auto inner = std::make_unique<ScratchScope>("ScratchScope.inner");
    EXPECT_DEATH(
        outer.reset(),
        "scope 'ScratchScope.outer' of thread [0-9]+ ended before one that began inside it");
    inner.reset();
    outer.reset();
}

}  // namespace
}  // namespace tensorpool
