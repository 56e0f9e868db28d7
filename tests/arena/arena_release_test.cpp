#include <tensorpool/arena.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena/arena_test.hpp"
#include "pages/random.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace {

using testing::ArenaUsage;
using testing::bare_options;
using testing::kib;
using testing::message_of;

std::string refusal_of(Arena& arena, Arena::Mark mark) {
    return message_of<std::invalid_argument>([&] { arena.release_to(mark); });
}

TEST(ArenaMark, OfAnotherArenaOrEmptyIsRefused) {
    Arena arena(bare_options());
    Arena other(bare_options());
    arena.allocate(100);
    other.allocate(100);
    const ArenaUsage before(arena);
    EXPECT_EQ(refusal_of(arena, other.mark()),
              "tensorpool: arena 'mine': release_to: the mark belongs to another arena");
    EXPECT_EQ(refusal_of(arena, Arena::Mark()),
              "tensorpool: arena 'mine': release_to: the mark is empty");
    EXPECT_EQ(ArenaUsage(arena), before);
}

TEST(ArenaMark, OfADestroyedArenaIsRefusedByItsSuccessor) {
    std::optional<Arena> arena(bare_options());
    const Arena::Mark mark = arena->mark();
    arena.emplace(bare_options());
    EXPECT_EQ(refusal_of(*arena, mark),
              "tensorpool: arena 'mine': release_to: the mark belongs to another arena");
}

TEST(ArenaMark, AheadOfTheArenaIsRefused) {
    Arena arena(bare_options());
    const Arena::Mark bottom = arena.mark();
    arena.allocate(1000);
    const Arena::Mark mark = arena.mark();
    EXPECT_EQ(mark.offset(), 1024U);
    arena.release_to(bottom);
    arena.allocate(64);
    const ArenaUsage before(arena);
    EXPECT_EQ(refusal_of(arena, mark),
              "tensorpool: arena 'mine': release_to: the mark at 1024 B lies ahead of the arena, "
              "which has 64 B in use");
    EXPECT_EQ(message_of<std::invalid_argument>([&] { arena.release_to(std::size_t{65}); }),
              "tensorpool: arena 'mine': release_to: the mark at 65 B lies ahead of the arena, "
              "which has 64 B in use");
    EXPECT_EQ(ArenaUsage(arena), before);
}

TEST(ArenaMark, StaleIsRefusedEvenIfItsOffsetIsInUseAgain) {
    Arena arena(bare_options());
    arena.allocate(64);
    const Arena::Mark low = arena.mark();
    arena.allocate(1000);
    const Arena::Mark mark = arena.mark();
    arena.release_to(low);
    arena.allocate(1000);
    arena.allocate(1000);
    const ArenaUsage before(arena);
    EXPECT_EQ(refusal_of(arena, mark),
              "tensorpool: arena 'mine': release_to: the mark at 1088 B is stale: a release went "
              "below it since");
    EXPECT_EQ(ArenaUsage(arena), before);
    EXPECT_EQ(refusal_of(arena, low), "") << "no release went below this mark";
}

TEST(ArenaMark, ForeignAndStaleOnesAreCountedAndReportedWithChecks) {
    const auto failed_checks = [] {
        return statistics::segment().header()->failed_checks[0].load();
    };
    for (const Checks checks : {Checks::off, Checks::basic}) {
        ArenaOptions options = bare_options();
        options.checks = checks;
        Arena arena(options);
        Arena other(options);
        const std::uint64_t before = failed_checks();
        const Arena::Mark bottom = arena.mark();
        arena.allocate(100);
        const Arena::Mark stale = arena.mark();
        arena.release_to(bottom);
        ::testing::internal::CaptureStderr();
        EXPECT_NE(refusal_of(arena, other.mark()), "");
        const std::string foreign_report = ::testing::internal::GetCapturedStderr();
        ::testing::internal::CaptureStderr();
        EXPECT_NE(refusal_of(arena, stale), "");
        const std::string stale_report = ::testing::internal::GetCapturedStderr();
        const bool is_checked = checks == Checks::basic;
        EXPECT_EQ(failed_checks() - before, is_checked ? 2U : 0U);
        EXPECT_EQ(foreign_report.find("tensorpool: error: foreign-mark ") == 0, is_checked);
        EXPECT_EQ(stale_report.find("tensorpool: error: stale-mark ") == 0, is_checked);
        EXPECT_EQ(foreign_report.empty() && stale_report.empty(), !is_checked);
    }
}

TEST(ArenaMark, CanBeReleasedToRepeatedly) {
    Arena arena(bare_options());
    arena.allocate(100);
    const Arena::Mark mark = arena.mark();
    void* const first = arena.allocate(1);
    for (std::size_t round = 1; round < 100; ++round) {
        arena.allocate(round * kib);
        arena.release_to(mark);
        EXPECT_EQ(arena.used(), 128U);
        EXPECT_EQ(arena.allocate(round), first);
    }
    arena.release_to(mark);
    arena.release_to(mark);
    EXPECT_EQ(arena.used(), mark.offset());
}

TEST(ArenaMark, AtOffsetZeroSurvivesEveryReset) {
    Arena arena(bare_options());
    const Arena::Mark mark = arena.mark();
    for (int round = 0; round < 3; ++round) {
        arena.allocate(1000);
        arena.reset();
        arena.allocate(1000);
        EXPECT_EQ(refusal_of(arena, mark), "");
        EXPECT_EQ(arena.used(), 0U);
    }
}

TEST(ArenaMark, UsedServesAsAPlainMark) {
    Arena arena(bare_options());
    arena.allocate(100);
    const std::size_t mark = arena.used();
    void* const next = arena.allocate(1000);
    arena.release_to(mark);
    EXPECT_EQ(arena.used(), mark);
    EXPECT_EQ(arena.allocate(1), next);
    arena.release_to(std::size_t{0});
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaMark, OffsetWithinABlockIsRefused) {
    Arena arena(bare_options());
    arena.allocate(1000);
    const ArenaUsage before(arena);
    EXPECT_EQ(
        message_of<std::invalid_argument>([&] { arena.release_to(std::size_t{100}); }),
        "tensorpool: arena 'mine': release_to: the mark at 100 B lies within a block: expected "
        "a multiple of 64 B, as used() gives");
    EXPECT_EQ(ArenaUsage(arena), before);
}

TEST(ArenaScope, ReleasesItsAllocationsAndNests) {
    Arena arena(bare_options());
    arena.allocate(64);
    {
        const ArenaScope outer(arena);
        arena.allocate(128);
        {
            const ArenaScope inner(arena);
            arena.allocate(256);
            EXPECT_EQ(arena.used(), 448U);
        }
        EXPECT_EQ(arena.used(), 192U);
    }
    EXPECT_EQ(arena.used(), 64U);
}

TEST(ArenaScope, DoesNothingWhenAReleaseWentBelowIt) {
    Arena arena(bare_options());
    const Arena::Mark bottom = arena.mark();
    arena.allocate(64);
    {
        const ArenaScope stale(arena);
        arena.allocate(64);
        arena.release_to(bottom);
        arena.allocate(1000);
    }
    EXPECT_EQ(arena.used(), 1024U);
    {
        const ArenaScope ahead(arena);
        arena.reset();
    }
    EXPECT_EQ(arena.used(), 0U);
}

TEST(ArenaScope, ReleasesAfterAReleaseToItsOwnMark) {
    Arena arena(bare_options());
    arena.allocate(64);
    const Arena::Mark mark = arena.mark();
    {
        const ArenaScope scope(arena);
        arena.allocate(64);
        arena.release_to(mark);
        arena.allocate(512);
    }
    EXPECT_EQ(arena.used(), 64U);
}

/// A mark and whether it is still valid. Each release updates all of these.
struct KnownMark {
    Arena::Mark mark;
    std::size_t offset;
    bool stale;
};

TEST(ArenaMark, AgreesWithAModelOfAllMarks) {
    for (std::uint32_t seed = 0; seed < 40; ++seed) {
        ArenaOptions options = bare_options();
        options.retain = seed % 2 == 0 ? SIZE_MAX : 16 * kib;
        Arena arena(options);
        testing::Random random(seed);
        std::vector<KnownMark> marks;
        std::size_t used = 0;
        std::size_t peak = 0;
        const auto went_to = [&](std::size_t offset) {
            used = offset;
            for (KnownMark& each : marks) each.stale |= each.offset > offset;
        };
        for (unsigned step = 0; step < 3000; ++step) {
            const std::uint32_t kind = random.below(100);
            if (kind < 50) {
                const std::size_t units = random.log_uniform(1, 40);
                ASSERT_NE(arena.allocate(units * 64), nullptr);
                used += units * 64;
                peak = std::max(peak, used);
            } else if (kind < 70) {
                marks.push_back({arena.mark(), used, false});
            } else if (kind < 71) {
                arena.reset();
                went_to(0);
            } else if (!marks.empty()) {
                const KnownMark chosen = marks[random.below(marks.size())];
                const std::string refusal = refusal_of(arena, chosen.mark);
                if (chosen.offset > used) {
                    ASSERT_NE(refusal.find("lies ahead"), std::string::npos) << refusal;
                } else if (chosen.stale) {
                    ASSERT_NE(refusal.find("is stale"), std::string::npos) << refusal;
                } else {
                    ASSERT_EQ(refusal, "");
                    went_to(chosen.offset);
                }
            }
            ASSERT_EQ(arena.used(), used) << "seed " << seed << ", step " << step;
            ASSERT_EQ(arena.peak(), peak);
        }
    }
}

}  // namespace
}  // namespace tensorpool
