// Allocation from a scratch. Scopes, marks, operators, buffers and threads have files of their own.

#include <tensorpool/scratch.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch_report.hpp>

#include "arena/scratch/scratch_tools.hpp"

namespace tensorpool {
namespace {

using namespace testing;

TEST(Scratch, IsCreatedAtFirstUseWith512KiB) {
    in_new_thread([] {
        EXPECT_EQ(detail::local_scratch, nullptr);
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(detail::local_scratch, &scratch);
        EXPECT_EQ(&Scratch::local(), &scratch);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.peak(), 0U);
        EXPECT_EQ(scratch.statistics().growths, 1U);
    });
}

TEST(Scratch, First512KiBNeedNoGrowth) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        fill(scratch.allocate(512 * kib), 512 * kib, 1);
        EXPECT_EQ(scratch.statistics().growths, 1U);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_NE(scratch.allocate(1), nullptr);
        EXPECT_EQ(scratch.statistics().growths, 2U);
    });
}

TEST(Scratch, BlocksAreAdjacentInMultiplesOf64) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        auto* const first = static_cast<std::byte*>(scratch.allocate(1));
        EXPECT_TRUE(is_aligned(first, 64));
        EXPECT_EQ(scratch.allocate(64), first + 64);
        EXPECT_EQ(scratch.allocate(65), first + 128);
        EXPECT_EQ(scratch.allocate(7, 1), first + 256);
        EXPECT_EQ(scratch.used(), 320U);
        EXPECT_EQ(scratch.peak(), 320U);
    });
}

TEST(Scratch, EveryPowerOfTwoIsAValidAlignment) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        std::vector<void*> blocks;
        for (std::size_t alignment = 1; alignment <= 4 * mib; alignment *= 2) {
            void* const block = scratch.allocate(100, alignment);
            EXPECT_TRUE(is_aligned(block, alignment)) << alignment;
            EXPECT_TRUE(is_aligned(block, 64)) << alignment;
            blocks.push_back(fill(block, 100, alignment));
        }
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            EXPECT_TRUE(is_filled(blocks[i], 100, std::size_t{1} << i));
        }
    });
}

TEST(Scratch, AlignmentPaddingCountsAsUsed) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.allocate(64);
        scratch.allocate(64, 4096);
        EXPECT_EQ(scratch.used(), 4096U + 64U) << "a chunk begins at a page boundary";
    });
}

TEST(Scratch, ZeroBytesReturnNull) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(scratch.allocate(0), nullptr);
        EXPECT_EQ(scratch.allocate(0, 4096), nullptr);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.statistics().refusals, 0U);
    });
}

TEST(Scratch, AlignmentMustBeAPowerOfTwo) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        for (const std::size_t alignment :
             {std::size_t{0}, std::size_t{3}, std::size_t{48}, std::size_t{65}, SIZE_MAX}) {
            EXPECT_THROW(scratch.allocate(1, alignment), std::invalid_argument) << alignment;
            EXPECT_THROW(scratch.allocate(0, alignment), std::invalid_argument) << alignment;
        }
        EXPECT_EQ(scratch.used(), 0U);
    });
}

TEST(Scratch, InvalidAlignmentErrorNamesScratchAndAlignment) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        try {
            scratch.allocate(1, 48);
            ADD_FAILURE();
        } catch (const std::invalid_argument& error) {
            EXPECT_EQ(error.what(), std::string("tensorpool: scratch of ") +
                                        scratch.statistics().name +
                                        ": allocate: alignment is 48 B; expected a power of two");
        }
    });
}

TEST(Scratch, RequestAboveMaxAllocationIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* const block = fill(scratch.allocate(100), 100, 1);
        for (const std::size_t bytes :
             {8 * gib + 1, 9 * gib, SIZE_MAX - 63, SIZE_MAX - 1, SIZE_MAX}) {
            try {
                scratch.allocate(bytes);
                ADD_FAILURE() << bytes;
            } catch (const AllocationError& error) {
                EXPECT_EQ(error.asked(), bytes);
                EXPECT_NE(std::string(error.what()).find("max_allocation"), std::string::npos);
            }
        }
        EXPECT_EQ(scratch.used(), 128U);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_EQ(scratch.statistics().refusals, 5U);
        EXPECT_TRUE(is_filled(block, 100, 1));
    });
}

TEST(Scratch, AlignmentBeyondAllMemoryIsRefused) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_THROW(scratch.allocate(1, std::size_t{1} << 63), AllocationError);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_NE(scratch.allocate(1), nullptr);
    });
}

TEST(Scratch, UsedNeverExceedsCapacityForAnyAlignment) {
    constexpr auto name = "Scratch.AlignmentAboveItsChunk";
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope(name);
            scratch.allocate(64, std::size_t{1} << 32);
            EXPECT_LE(scratch.used(), scratch.capacity());
            EXPECT_EQ(scratch.statistics().used_bytes, scratch.used());
        }
        EXPECT_LE(scratch.peak(), mib);
        EXPECT_GE(scratch.capacity(), 512 * kib);
    });
    for (const OperatorScratch& one : scratch_report().operators) {
        if (one.name == name) {
            EXPECT_LE(one.peak_bytes, mib);
        }
    }
}

TEST(Scratch, ReserveReplacesAnEmptyChunk) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.reserve(100 * mib);
        EXPECT_EQ(scratch.capacity(), 100 * mib);
        const std::uint64_t growths = scratch.statistics().growths;
        for (int round = 0; round < 2; ++round) {
            const ScratchScope scope;
            fill(scratch.allocate(100 * mib), mib, 1);
        }
        EXPECT_EQ(scratch.statistics().growths, growths) << "no chunks had to be joined";
    });
}

TEST(Scratch, ReserveMakesRoomThatNeedsNoGrowth) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.allocate(100);
        scratch.reserve(0);
        scratch.reserve(511 * kib);
        EXPECT_EQ(scratch.statistics().growths, 1U);
        scratch.reserve(3 * mib);
        EXPECT_EQ(scratch.statistics().growths, 2U);
        scratch.reserve(3 * mib);
        fill(scratch.allocate(3 * mib), 3 * mib, 1);
        EXPECT_EQ(scratch.statistics().growths, 2U);
        EXPECT_THROW(scratch.reserve(SIZE_MAX), AllocationError);
        EXPECT_THROW(scratch.reserve(SIZE_MAX - 4096), AllocationError);
        EXPECT_EQ(scratch.statistics().growths, 2U);
    });
}

TEST(Scratch, ReservedMemoryStaysAfterASmallerScope) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        scratch.reserve(40 * mib);
        {
            const ScratchScope scope;
            scratch.allocate(100);
        }
        const std::uint64_t growths = scratch.statistics().growths;
        {
            const ScratchScope scope;
            scratch.allocate(40 * mib);
        }
        EXPECT_EQ(scratch.statistics().growths, growths);
    });
}

TEST(Scratch, TrimOfAnEmptyScratchGivesEverythingBack) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        EXPECT_EQ(scratch.trim(), 512 * kib);
        EXPECT_EQ(scratch.trim(), 0U);
        EXPECT_EQ(scratch.capacity(), 0U);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(scratch.allocate(0), nullptr);
        { const ScratchScope scope; }
        fill(scratch.allocate(100), 100, 1);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        scratch.reset();
        scratch.trim();
        scratch.reserve(mib);
        EXPECT_EQ(scratch.capacity(), mib);
    });
}

TEST(Scratch, TrimKeepsUsedMemory) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        void* const first = fill(scratch.allocate(400 * kib), 400 * kib, 1);
        scratch.reserve(10 * mib);
        EXPECT_EQ(scratch.trim(), 10 * mib);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        void* const second = fill(scratch.allocate(mib), mib, 2);
        EXPECT_EQ(scratch.trim(), 0U);
        EXPECT_TRUE(is_filled(first, 400 * kib, 1));
        EXPECT_TRUE(is_filled(second, mib, 2));
    });
}

TEST(Scratch, TrimInAnOpenScopeKeepsItsFirstChunk) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        EXPECT_EQ(scratch.trim(), 0U);
        scratch.reserve(mib);
        EXPECT_EQ(scratch.trim(), mib);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
    });
}

TEST(Scratch, TrimForgetsTheNeedOfEarlierRuns) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        for (int round = 0; round < 2; ++round) {
            const ScratchScope scope;
            scratch.allocate(100 * mib);
        }
        EXPECT_EQ(scratch.trim(), 228 * mib);
        {
            const ScratchScope scope;
            for (int i = 0; i < 3; ++i) scratch.allocate(mib);
        }
        EXPECT_EQ(scratch.capacity(), 16 * mib);
        EXPECT_EQ(scratch.peak(), 100 * mib);
    });
}

TEST(Scratch, StatisticsCountGrowthsAndGiveBacks) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        {
            const ScratchScope scope;
            scratch.allocate(3 * mib);
            const ArenaStatistics statistics = scratch.statistics();
            EXPECT_EQ(statistics.used_bytes, 3 * mib);
            EXPECT_EQ(statistics.capacity_bytes, 3 * mib + 512 * kib);
            EXPECT_EQ(statistics.growths, 2U);
        }
        const ArenaStatistics statistics = scratch.statistics();
        EXPECT_EQ(statistics.kind, ArenaStatistics::Kind::scratch);
        EXPECT_EQ(std::string(statistics.name).substr(0, 7), "thread ");
        EXPECT_EQ(statistics.used_bytes, 0U);
        EXPECT_EQ(statistics.peak_used_bytes, 3 * mib);
        EXPECT_EQ(statistics.allocations, 1U);
        EXPECT_EQ(statistics.releases, 1U);
        EXPECT_EQ(statistics.capacity_bytes, 16 * mib);
        EXPECT_EQ(statistics.reserved_bytes, 16 * mib);
        EXPECT_EQ(statistics.peak_capacity_bytes, 16 * mib);
        EXPECT_EQ(statistics.growths, 3U);
        EXPECT_EQ(statistics.grown_bytes, 19 * mib + 512 * kib);
        EXPECT_EQ(statistics.give_backs, 1U);
        EXPECT_EQ(statistics.given_back_bytes, 3 * mib + 512 * kib);
        EXPECT_EQ(statistics.refusals, 0U);
    });
}

TEST(Scratch, CountsAllocationsAndReleasesOnEveryPath) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const Scratch::Mark mark = scratch.mark();
        scratch.allocate(100);
        scratch.allocate(100, 4096);
        scratch.allocate(0);
        scratch.release_to(mark);
        { const ScratchScope named("softmax"); }
        { const PooledAllocation held(scratch, 100); }
        scratch.reset();
        EXPECT_EQ(scratch.statistics().allocations, 3U);
        EXPECT_EQ(scratch.statistics().releases, 4U);
    });
}

}  // namespace
}  // namespace tensorpool
