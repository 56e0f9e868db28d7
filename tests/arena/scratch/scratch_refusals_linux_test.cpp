// Scratch when the system refuses memory.

#include <tensorpool/scratch.hpp>
#include <tensorpool/snapshot.hpp>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <vector>

#include "arena/refused_maps.hpp"
#include "arena/scratch/scratch_tools.hpp"
#include "limits/commit_budget.hpp"

extern "C" {
void* __real_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset);
void* __wrap_mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                  off_t offset) {
    if (tensorpool::testing::RefusedMaps::refuses(bytes)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return __real_mmap(address, bytes, protection, flags, file, offset);
}
}

namespace tensorpool {
namespace {

using namespace testing;

std::size_t committed() {
    return limits::commit_budget().committed();
}

TEST(ScratchRefused, FailedFirstUseCanBeRetried) {
    in_new_thread([] {
        const std::size_t before = committed();
        const std::size_t alive = take_snapshot().scratches.size();
        {
            const RefusedMaps refused(0);
            EXPECT_THROW(Scratch::local(), AllocationError);
            EXPECT_THROW(ScratchScope("ScratchRefused.first"), AllocationError);
        }
        EXPECT_EQ(committed(), before);
        EXPECT_EQ(take_snapshot().scratches.size(), alive);
        EXPECT_NE(Scratch::local().allocate(1), nullptr);
    });
}

TEST(ScratchRefused, RefusedGrowthChangesNothing) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope outer("ScratchRefused.growth");
        void* const one = fill(scratch.allocate(400 * kib), 400 * kib, 1);
        const std::size_t before = committed();
        {
            const RefusedMaps refused(0);
            for (int round = 0; round < 3; ++round) {
                EXPECT_THROW(scratch.allocate(200 * kib), AllocationError);
            }
            EXPECT_THROW(scratch.reserve(mib), AllocationError);
            EXPECT_EQ(scratch.used(), 400 * kib);
            EXPECT_NE(scratch.allocate(100 * kib), nullptr) << "there is room";
            const ScratchScope inner;
            EXPECT_THROW(scratch.allocate(200 * kib, 8192), AllocationError);
        }
        EXPECT_EQ(committed(), before);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_EQ(scratch.statistics().refusals, 5U);
        EXPECT_EQ(scratch.used(), 500 * kib);
        EXPECT_TRUE(is_filled(one, 400 * kib, 1));
        EXPECT_NE(scratch.allocate(200 * kib), nullptr);
    });
}

TEST(ScratchRefused, GrowthIsRetriedWithoutSurplus) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const ScratchScope scope;
        std::vector<void*> blocks;
        for (std::size_t i = 0; i < 8; ++i) {
            blocks.push_back(fill(scratch.allocate(512 * kib), 512 * kib, i));
        }
        const std::size_t capacity = scratch.capacity();
        EXPECT_EQ(capacity, 4 * mib);
        const std::size_t before = committed();
        const RefusedMaps refused(2 * mib);
        blocks.push_back(fill(scratch.allocate(512 * kib), 512 * kib, 8));
        EXPECT_EQ(scratch.capacity(), capacity + 512 * kib);
        EXPECT_EQ(committed(), before + 512 * kib);
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            EXPECT_TRUE(is_filled(blocks[i], 512 * kib, i));
        }
    });
}

TEST(ScratchRefused, RefusedJoiningLeavesAnEmptyScratch) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const std::size_t before = committed() - scratch.capacity();
        const RefusedMaps refused(3 * mib);
        {
            const ScratchScope scope;
            scratch.allocate(3 * mib);
            scratch.allocate(2 * mib);
        }
        // The system refuses both the 16 MiB and the 5 MiB that were needed.
        EXPECT_EQ(scratch.capacity(), 0U);
        EXPECT_EQ(scratch.used(), 0U);
        EXPECT_EQ(committed(), before);
        EXPECT_EQ(scratch.statistics().refusals, 0U) << "there was no request";
        const ScratchScope scope;
        EXPECT_NE(fill(scratch.allocate(2 * mib), 2 * mib, 1), nullptr);
    });
}

TEST(ScratchRefused, JoiningFallsBackToTheNeededBytes) {
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const RefusedMaps refused(15 * mib);
        {
            const ScratchScope scope;
            scratch.allocate(3 * mib);
        }
        EXPECT_EQ(scratch.capacity(), 3 * mib);
        const std::uint64_t growths = scratch.statistics().growths;
        {
            const ScratchScope scope;
            scratch.allocate(3 * mib);
        }
        EXPECT_EQ(scratch.statistics().growths, growths);
    });
}

TEST(ScratchRefused, OperatorRunsWhenItsReservationIsRefused) {
    constexpr auto name = "ScratchRefused.operator";
    in_new_thread([] {
        const ScratchScope scope(name);
        Scratch::local().allocate(10 * mib);
    });
    in_new_thread([] {
        Scratch& scratch = Scratch::local();
        const RefusedMaps refused(mib);
        const ScratchScope scope(name);
        EXPECT_EQ(scratch.capacity(), 512 * kib);
        EXPECT_NE(fill(scratch.allocate(400 * kib), 400 * kib, 1), nullptr);
        EXPECT_THROW(scratch.allocate(10 * mib), AllocationError);
    });
}

}  // namespace
}  // namespace tensorpool
