#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "arena/arena_test.hpp"
#include "base/alignment.hpp"
#include "limits/commit_budget.hpp"
#include "pages/random.hpp"
#include "support/process_metrics.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::gib;
using testing::kib;
using testing::mib;

/// Runs a sequence that depends on the seed only, not on addresses: nested phases with blocks of
/// all sizes, some of them aligned to up to 8 MiB.
void run(Arena& arena, std::uint32_t seed) {
    testing::Random random(seed);
    std::vector<Arena::Mark> marks;
    for (unsigned step = 0; step < 400; ++step) {
        const bool wide = random.one_in(20);
        const std::size_t alignment = std::size_t{1} << random.below(wide ? 24 : 12);
        const std::size_t bytes = random.log_uniform(1, random.one_in(10) ? 300'000 : 3'000);
        switch (random.below(12)) {
            case 0:
                marks.push_back(arena.mark());
                break;
            case 1:
                if (marks.empty()) break;
                arena.release_to(marks.back());
                if (random.one_in(2)) marks.pop_back();
                break;
            case 2:
                if (!random.one_in(20)) break;
                arena.reset();
                marks.clear();
                break;
            default:
                ASSERT_NE(random.one_in(2) ? arena.allocate(bytes, alignment)
                                           : arena.try_allocate(bytes, alignment),
                          nullptr);
        }
    }
}

TEST(ArenaMeasuring, RunInAnArenaReservedToTheMeasuredPeakNeverGrows) {
    for (std::uint32_t seed = 0; seed < 24; ++seed) {
        ArenaOptions options = bare_options();
        options.max_capacity = 2 * gib;
        options.alignment = std::size_t{1} << (seed % 24);
        Arena measuring = Arena::measuring(options);
        run(measuring, seed);
        // Changes the address at which the next arena begins.
        Arena other(bare_options());
        Arena arena(options);
        arena.reserve(measuring.peak());
        run(arena, seed);
        EXPECT_EQ(arena.statistics().growths, 1U) << seed;
        EXPECT_LE(arena.peak(), measuring.peak()) << seed;
    }
}

TEST(ArenaMeasuring, WithoutLargeAlignmentsThePeakIsExact) {
    Arena measuring = Arena::measuring(bare_options());
    Arena arena(bare_options());
    for (Arena* const each : {&measuring, &arena}) {
        testing::Random random(3);
        for (int i = 0; i < 200; ++i) {
            ASSERT_NE(
                each->allocate(random.log_uniform(1, 20'000), std::size_t{1} << random.below(22)),
                nullptr);
            if (each->used() > 30 * mib) each->reset();
        }
    }
    EXPECT_EQ(measuring.peak(), arena.peak());
    EXPECT_EQ(measuring.used(), arena.used());
}

TEST(ArenaMeasuring, AddressesAreAlignedAndDoNotOverlap) {
    Arena arena = Arena::measuring();
    testing::Random random(4);
    std::map<std::uintptr_t, std::size_t> blocks;
    for (int i = 0; i < 2000; ++i) {
        const std::size_t bytes = random.log_uniform(1, 100 * mib);
        const std::size_t alignment = std::size_t{1} << random.below(24);
        const auto at = reinterpret_cast<std::uintptr_t>(arena.allocate(bytes, alignment));
        ASSERT_NE(at, 0U);
        ASSERT_TRUE(base::is_aligned(at, alignment));
        if (!blocks.empty()) {
            const auto& [last, last_bytes] = *blocks.rbegin();
            ASSERT_GE(at, last + last_bytes);
        }
        blocks[at] = bytes;
    }
    EXPECT_GT(arena.used(), gib);
}

TEST(ArenaMeasuring, TakesNeitherMemoryNorAddressSpace) {
    const std::size_t committed = limits::commit_budget().committed();
    { const Arena first = Arena::measuring(); }  // so that there is a segment
    const std::size_t address_space = testing::memory_metrics().address_space;
    Arena arena = Arena::measuring();
    for (int i = 0; i < 1000; ++i) arena.allocate(gib);
    EXPECT_EQ(arena.used(), 1000 * gib);
    EXPECT_EQ(arena.peak(), 1000 * gib);
    EXPECT_EQ(arena.capacity(), 0U);
    EXPECT_EQ(arena.reserved(), 0U);
    arena.reserve(4000 * gib);
    EXPECT_EQ(arena.trim(), 0U);
    EXPECT_EQ(arena.capacity(), 0U);
    EXPECT_EQ(arena.name(), "measuring");
    EXPECT_EQ(arena.statistics().kind, ArenaStatistics::Kind::measuring);
    EXPECT_EQ(arena.statistics().growths, 0U);
    EXPECT_EQ(limits::commit_budget().committed(), committed);
    EXPECT_LE(testing::memory_metrics().address_space, address_space + mib);
}

TEST(ArenaMeasuring, ReleasesLikeOtherArenas) {
    Arena arena = Arena::measuring();
    void* const first = arena.allocate(100);
    const Arena::Mark mark = arena.mark();
    void* const second = arena.allocate(1000);
    arena.release_to(mark);
    EXPECT_EQ(arena.used(), 128U);
    EXPECT_EQ(arena.allocate(1), second);
    arena.reset();
    EXPECT_EQ(arena.allocate(1), first);
    EXPECT_EQ(arena.peak(), 128U + 1024);
    EXPECT_THROW(arena.release_to(mark), std::invalid_argument);
}

TEST(ArenaMeasuring, EnforcesMaxAllocation) {
    ArenaOptions options;
    options.max_allocation = 10 * kib;
    Arena arena = Arena::measuring(options);
    EXPECT_NE(arena.allocate(10 * kib), nullptr);
    EXPECT_THROW(arena.allocate(10 * kib + 1), AllocationError);
}

TEST(ArenaMeasuring, EndsBeyondTheReachOfRealArenas) {
    ArenaOptions options;
    options.max_allocation = SIZE_MAX;
    Arena arena = Arena::measuring(options);
    ASSERT_NE(arena.allocate((std::size_t{1} << 46) - 64), nullptr);
    EXPECT_NE(testing::message_of<AllocationError>([&] {
                  arena.allocate(65);
              }).find("limit met: the measuring range"),
              std::string::npos);
    EXPECT_NE(arena.allocate(64), nullptr);
}

}  // namespace
}  // namespace tensorpool
