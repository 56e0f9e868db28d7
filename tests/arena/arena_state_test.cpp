// Statistics of arenas, and the threads that may use an arena.

#include "arena/arena_state.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <csignal>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/snapshot.hpp>

#include "arena/arena_test.hpp"
#include "base/alignment.hpp"
#include "platform/platform.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::kib;
using testing::mib;

std::vector<std::string> names_in_snapshot() {
    std::vector<std::string> names;
    for (const ArenaStatistics& arena : take_snapshot().arenas) names.emplace_back(arena.name);
    return names;
}

TEST(ArenaStatisticsOfAnArena, ReportUseGrowthAndRefusals) {
    ArenaOptions options = bare_options();
    options.retain = mib;
    Arena arena(options);
    const Arena::Mark mark = arena.mark();
    arena.allocate(100);
    arena.allocate(3 * mib);
    arena.try_allocate(100 * mib);
    ArenaStatistics statistics = arena.statistics();
    EXPECT_EQ(statistics.version, ArenaStatistics::current_version);
    EXPECT_STREQ(statistics.name, "mine");
    EXPECT_EQ(statistics.kind, ArenaStatistics::Kind::growing);
    EXPECT_EQ(statistics.used_bytes, 3 * mib + 128);
    EXPECT_EQ(statistics.peak_used_bytes, 3 * mib + 128);
    EXPECT_EQ(statistics.capacity_bytes, 3 * mib + platform::page_bytes());
    EXPECT_EQ(statistics.reserved_bytes, 64 * mib);
    EXPECT_EQ(statistics.limit_bytes, 64 * mib);
    EXPECT_EQ(statistics.growths, 2U);
    EXPECT_EQ(statistics.grown_bytes, statistics.capacity_bytes);
    EXPECT_EQ(statistics.give_backs, 0U);
    EXPECT_EQ(statistics.refusals, 1U);
    arena.release_to(mark);
    arena.allocate(10);
    statistics = arena.statistics();
    EXPECT_EQ(statistics.used_bytes, 64U);
    EXPECT_EQ(statistics.peak_used_bytes, 3 * mib + 128);
    EXPECT_EQ(statistics.capacity_bytes, mib);
    EXPECT_EQ(statistics.peak_capacity_bytes, 3 * mib + platform::page_bytes());
    EXPECT_EQ(statistics.give_backs, 1U);
    EXPECT_EQ(statistics.given_back_bytes, statistics.grown_bytes - mib);
}

TEST(ArenaStatisticsOfAnArena, CapacityEndsAtALimitWithinAPage) {
    ArenaOptions options = bare_options();
    options.max_capacity = 3 * platform::page_bytes() + 100;
    Arena arena(options);
    arena.reserve(options.max_capacity);
    EXPECT_EQ(arena.capacity(), options.max_capacity);
    EXPECT_EQ(arena.available(), options.max_capacity);
    EXPECT_EQ(arena.statistics().capacity_bytes, options.max_capacity);
    EXPECT_EQ(arena.statistics().limit_bytes, options.max_capacity);
    EXPECT_EQ(arena.reserved(), 4 * platform::page_bytes());
}

TEST(ArenaStatisticsOfAnArena, LimitIsReportedWithoutAnExplicitMaximum) {
    ArenaOptions options = bare_options();
    options.max_capacity = 0;
    const Arena arena(options);
    EXPECT_EQ(base::align_up(arena.statistics().limit_bytes, platform::page_bytes()),
              arena.reserved());
}

TEST(ArenaStatisticsOfAnArena, PeakIsTheMaximumOfAllPhases) {
    Arena arena(bare_options());
    for (const std::size_t phase : {100 * kib, 300 * kib, 200 * kib}) {
        arena.allocate(phase);
        arena.reset();
    }
    EXPECT_EQ(arena.peak(), 300 * kib);
    arena.allocate(mib);
    EXPECT_EQ(arena.peak(), mib) << "the present phase counts too";
}

TEST(ArenaStatisticsOfAnArena, OverABufferReportTheBuffer) {
    alignas(64) std::byte buffer[4096];
    Arena arena = Arena::over(buffer);
    arena.allocate(100);
    const ArenaStatistics statistics = arena.statistics();
    EXPECT_STREQ(statistics.name, "buffer");
    EXPECT_EQ(statistics.kind, ArenaStatistics::Kind::buffer);
    EXPECT_EQ(statistics.used_bytes, 128U);
    EXPECT_EQ(statistics.capacity_bytes, 4096U);
    EXPECT_EQ(statistics.peak_capacity_bytes, 4096U);
    EXPECT_EQ(statistics.reserved_bytes, 4096U);
    EXPECT_EQ(statistics.limit_bytes, 4096U);
    EXPECT_EQ(statistics.growths, 0U);
}

TEST(ArenaSnapshot, ListsLivingArenasInOrderOfConstruction) {
    const std::vector<std::string> before = names_in_snapshot();
    const auto with = [&](std::initializer_list<const char*> more) {
        std::vector<std::string> names = before;
        names.insert(names.end(), more.begin(), more.end());
        return names;
    };
    auto first = std::make_unique<Arena>(ArenaOptions{.name = "first", .initial_capacity = 0});
    std::byte buffer[64];
    {
        Arena second = Arena::over(buffer);
        Arena third = Arena::measuring();
        third.allocate(1000);
        EXPECT_EQ(names_in_snapshot(), with({"first", "buffer", "measuring"}));
        EXPECT_EQ(take_snapshot().arenas.back().used_bytes, 1024U);
        first.reset();
        EXPECT_EQ(names_in_snapshot(), with({"buffer", "measuring"}));
    }
    EXPECT_EQ(names_in_snapshot(), before);
    EXPECT_THROW(Arena{ArenaOptions{.alignment = 3}}, std::invalid_argument);
    EXPECT_EQ(names_in_snapshot(), before) << "an arena whose construction failed is not listed";
}

TEST(ArenaSnapshot, MayBeTakenWhileArenasChange) {
    Arena shared(bare_options());
    std::atomic<bool> over = false;
    std::thread looks([&] {
        while (!over) {
            for (const ArenaStatistics& arena : take_snapshot().arenas) {
                EXPECT_LE(arena.used_bytes, 64 * mib);
            }
        }
    });
    for (int i = 0; i < 200; ++i) {
        Arena own(bare_options());
        own.allocate(100 * kib);
        shared.allocate(100 * kib);
    }
    over = true;
    looks.join();
    EXPECT_EQ(shared.used(), 200 * 100 * kib);
}

class OneThreadArenaDeathTest : public ::testing::TestWithParam<Checks> {
protected:
    static ArenaOptions options(Checks checks) {
        ArenaOptions options = bare_options();
        options.sharing = Sharing::one_thread;
        options.checks = checks;
        return options;
    }
    /// Expects that the program stops if the arena is used here, and then by another thread.
    template <class Use>
    void expect_stop(const char* call, Use use) {
        const auto misuse = [&] {
            Arena arena(options(GetParam()));
            arena.allocate(100);
            std::thread([&] { use(arena); }).join();
        };
        EXPECT_EXIT(misuse(), ::testing::KilledBySignal(SIGABRT),
                    "^tensorpool: fatal: wrong-thread ptr=[^ ]* size=- requested=- pool=mine "
                    "thread=[0-9]+\n  " +
                        std::string(call) +
                        ": arena 'mine' belongs to one thread \\(Sharing::one_thread\\), and "
                        "another one used it before\n");
    }
};

INSTANTIATE_TEST_SUITE_P(Levels, OneThreadArenaDeathTest,
                         ::testing::Values(Checks::basic, Checks::full), [](const auto& param) {
                             return param.param == Checks::full ? "Full" : "Basic";
                         });

TEST_P(OneThreadArenaDeathTest, UseByAnotherThreadStopsTheProgram) {
    expect_stop("allocate", [](Arena& arena) { arena.allocate(1); });
    expect_stop("allocate", [](Arena& arena) { arena.try_allocate(1); });
    expect_stop("allocate", [](Arena& arena) { arena.allocate(1, 4096); });
    expect_stop("release_to or reset", [](Arena& arena) { arena.reset(); });
    expect_stop("release_to or reset", [](Arena& arena) { arena.release_to(arena.mark()); });
    expect_stop("trim", [](Arena& arena) { arena.trim(); });
    expect_stop("reserve", [](Arena& arena) { arena.reserve(mib); });
}

TEST_P(OneThreadArenaDeathTest, FirstThreadToAllocateOwnsTheArena) {
    Arena arena(options(GetParam()));
    std::thread([&] {
        EXPECT_NE(arena.allocate(100), nullptr);
        EXPECT_NE(arena.allocate(mib), nullptr);
        arena.reset();
    }).join();
    EXPECT_EQ(arena.used(), 0U) << "statistics may be read by every thread";
    EXPECT_EQ(arena.statistics().growths, 2U);
}

TEST_P(OneThreadArenaDeathTest, OnlyAnAllocationSetsTheOwner) {
    Arena arena(options(GetParam()));
    arena.reserve(mib);
    arena.reset();
    arena.trim();
    std::thread([&] { EXPECT_NE(arena.allocate(100), nullptr); }).join();
    EXPECT_EXIT(arena.reset(), ::testing::KilledBySignal(SIGABRT), "another one used it before");
}

TEST_P(OneThreadArenaDeathTest, SharedArenaServesEveryThread) {
    ArenaOptions shared = options(GetParam());
    shared.sharing = Sharing::any_thread;
    Arena arena(shared);
    arena.allocate(1);
    std::thread([&] { arena.allocate(1); }).join();
    EXPECT_EQ(arena.used(), 128U);
}

TEST(OneThreadArena, WithoutChecksIsUnchecked) {
    ArenaOptions options = bare_options();
    options.sharing = Sharing::one_thread;
    options.checks = Checks::off;
    Arena arena(options);
    arena.allocate(1);
    std::thread([&] { arena.allocate(1); }).join();  // not concurrent, so it does no harm
    EXPECT_EQ(arena.used(), 128U);
}

}  // namespace
}  // namespace tensorpool
