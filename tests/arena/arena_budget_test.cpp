// Arenas and contexts that charge their capacity to a budget.

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/pooled_allocation.hpp>
#include <tensorpool/scratch.hpp>

#include "arena/arena_test.hpp"
#include "support/all_bytes.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using testing::bare_options;
using testing::gib;
using testing::message_of;
using testing::mib;

ArenaOptions options_with(Budget& budget) {
    ArenaOptions options = bare_options();
    options.budget = &budget;
    return options;
}

TEST(ArenaBudget, ChargeIsTheCapacity) {
    Budget process("process");
    Budget budget(process, "arenas");
    {
        ArenaOptions options = options_with(budget);
        options.retain = mib;
        Arena arena(options);
        (void)arena.allocate(5 * mib);
        EXPECT_EQ(budget.in_use(), 5 * mib);
        EXPECT_EQ(process.in_use(), 5 * mib);
        arena.reserve(7 * mib);
        EXPECT_EQ(budget.in_use(), 7 * mib);
        arena.trim();
        EXPECT_EQ(budget.in_use(), 5 * mib);
        arena.reset();
        EXPECT_EQ(budget.in_use(), mib) << "what is above `retain` goes back";
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(ArenaBudget, ScopesAreChargedForTheGrowthInThemUntilItIsGivenBack) {
    Budget process("process");
    Budget one(process, "one");
    Budget other(process, "other", {.hard = 4 * mib});
    std::optional<Budget> ending(std::in_place, process, "ending");
    {
        Arena arena(bare_options());
        (void)arena.allocate(mib);
        const auto grow = [&](Budget& budget, std::size_t bytes) {
            const BudgetScope scope(budget);
            (void)arena.allocate(bytes);
        };
        grow(one, mib);
        grow(one, mib);
        grow(other, 3 * mib);
        grow(one, 2 * mib);
        grow(*ending, mib);
        EXPECT_EQ(one.in_use(), 4 * mib);
        EXPECT_EQ(other.in_use(), 3 * mib);
        EXPECT_THROW(grow(other, 2 * mib), AllocationError);
        EXPECT_EQ(other.in_use(), 3 * mib);
        EXPECT_EQ(arena.used(), 9 * mib) << "a refused request changes nothing";
        ending.reset();
        EXPECT_EQ(process.in_use(), 8 * mib);
        arena.release_to(4 * mib);
        arena.trim();
        EXPECT_EQ(one.in_use(), 2 * mib);
        EXPECT_EQ(other.in_use(), mib);
        EXPECT_EQ(process.in_use(), 3 * mib);
        grow(*std::make_unique<Budget>(process, "short"), mib);
        EXPECT_EQ(process.in_use(), 4 * mib);
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(ArenaBudget, ScopesChargeTheInitialCapacityWithTheFirstAllocation) {
    Budget budget("request");
    ArenaOptions options = bare_options();
    options.initial_capacity = 2 * mib;
    Arena arena(options);
    {
        const BudgetScope scope(budget);
        (void)arena.allocate(100);
        EXPECT_EQ(budget.in_use(), 2 * mib);
    }
    arena.reset();
    arena.trim();
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(ArenaBudget, HoldersOfAScopeMakeRoomForArenasAndScratches) {
    class Cache : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return held_.capacity(); }
        std::size_t give(std::size_t) noexcept override {
            held_.reset();
            return held_.trim();
        }
        void fill(std::size_t bytes) { (void)held_.allocate(bytes); }

    private:
        Arena held_{bare_options()};
    };
    Budget budget("request", {.hard = 20 * mib});
    Cache cache;
    const HolderRegistration registration = budget.add_holder(cache);
    const BudgetScope scope(budget);
    for (const bool in_scratch : {false, true}) {
        cache.fill(16 * mib);
        EXPECT_EQ(budget.in_use(), 16 * mib);
        std::thread([&] {
            const BudgetScope of_thread(budget);
            Arena arena(bare_options());
            EXPECT_NE(in_scratch ? Scratch::local().allocate(8 * mib) : arena.allocate(8 * mib),
                      nullptr);
            EXPECT_LE(budget.in_use(), 10 * mib);
        }).join();
        EXPECT_EQ(budget.in_use(), 0U);
    }
}

TEST(ArenaBudget, ScopeThatGrowsAnArenaAgainAfterAPartWentBackIsChargedOnce) {
    Budget budget("request");
    {
        Arena arena(bare_options());
        const BudgetScope scope(budget);
        (void)arena.allocate(4 * mib);
        arena.release_to(mib);
        arena.trim();
        EXPECT_EQ(budget.in_use(), mib);
        (void)arena.allocate(2 * mib);
        EXPECT_EQ(budget.in_use(), 3 * mib);
        arena.reset();
        arena.trim();
        EXPECT_EQ(budget.in_use(), 0U);
        (void)arena.allocate(2 * mib);
    }
    EXPECT_EQ(budget.in_use(), 0U);
}

// Uses the scratch of the thread that asks it, as operators do.
class ScratchUser : public MemoryHolder {
public:
    std::size_t available() const noexcept override { return held_; }
    std::size_t give(std::size_t) noexcept override {
        const ScratchScope scope;
        std::memset(Scratch::local().allocate(100'000), 1, 100'000);
        { const PooledAllocation handle(Scratch::local(), 1000); }
        return std::exchange(held_, 0);
    }
    void hold(std::size_t bytes) { held_ = bytes; }

private:
    std::size_t held_ = 0;
};

TEST(ArenaBudget, HoldersThatAreAskedForAScratchMayUseIt) {
    Budget budget("request");
    ScratchUser holder;
    const HolderRegistration registration = budget.add_holder(holder);
    std::thread([&] {
        const BudgetScope scope(budget);
        for (const std::size_t soft : {std::size_t{4096}, mib, 3 * mib}) {
            budget.set_limits({.soft = soft});
            holder.hold(100 * mib);
            const ScratchScope outer;
            const std::size_t used = Scratch::local().used();
            {
                PooledAllocation first(Scratch::local(), 2 * mib);
                holder.hold(100 * mib);
                PooledAllocation second(Scratch::local(), 3 * mib, 4096);
                std::memset(first.get(), 2, first.size());
                std::memset(second.get(), 3, second.size());
                first.reset();
                EXPECT_TRUE(testing::all_bytes_are(3, second.get(), second.size()));
            }
            EXPECT_EQ(Scratch::local().used(), used);
            holder.hold(100 * mib);
        }
        Scratch::local().trim();
        EXPECT_EQ(budget.in_use(), 0U);
    }).join();
}

TEST(ArenaBudget, ChildOfAForkKeepsWhatIsChargedForItsThread) {
    Budget budget("request");
    std::atomic<int> stage = 0;
    std::thread other([&] {
        const BudgetScope scope(budget);
        (void)Scratch::local().allocate(5 * mib);
        stage = 1;
        while (stage != 2) std::this_thread::yield();
    });
    while (stage != 1) std::this_thread::yield();
    const std::size_t of_other = budget.in_use();
    EXPECT_GE(of_other, 5 * mib);
    const BudgetScope scope(budget);
    Arena arena(bare_options());
    (void)arena.allocate(mib);
    EXPECT_TRUE(testing::holds_in_child([&] {
        if (budget.in_use() != mib) return false;  // the other thread's scratch is given back
        (void)arena.allocate(mib);
        arena.reset();
        arena.trim();
        return budget.in_use() == 0;
    }));
    EXPECT_EQ(budget.in_use(), of_other + mib);
    stage = 2;
    other.join();
    EXPECT_EQ(budget.in_use(), mib);
}

TEST(ArenaBudget, InitialCapacityIsChargedByTheFirstAllocation) {
    Budget budget("arenas", {.hard = 6 * mib});
    ArenaOptions options = options_with(budget);
    options.initial_capacity = 4 * mib;
    Arena first(options);
    EXPECT_EQ(budget.in_use(), 0U);
    (void)first.allocate(100);
    EXPECT_EQ(budget.in_use(), 4 * mib);
    EXPECT_THROW(Arena second(options), AllocationError);
    EXPECT_EQ(budget.in_use(), 4 * mib);
    options.initial_capacity = 2 * mib;
    Arena third(options);
    Arena fourth(options);
    (void)third.allocate(100);
    EXPECT_EQ(fourth.try_allocate(100), nullptr);
    EXPECT_EQ(fourth.used(), 0U);
    EXPECT_EQ(budget.in_use(), 6 * mib);
}

class RefusingArena : public ::testing::TestWithParam<Sharing> {};

TEST_P(RefusingArena, RefusesWhatTheLimitDoesNotAllow) {
    Budget process("process");
    Budget budget(process, "arenas", {.hard = 8 * mib});
    ArenaOptions options = options_with(budget);
    options.sharing = GetParam();
    Arena arena(options);
    (void)arena.allocate(6 * mib);
    const testing::ArenaUsage before(arena);
    EXPECT_EQ(arena.try_allocate(4 * mib), nullptr);
    const std::string text = message_of<AllocationError>([&] { (void)arena.allocate(4 * mib); });
    for (const char* const part :
         {"mine: allocate", "limit met: the budget's hard limit (8 MiB)", "10 MiB",
          "holders gave 0 B", "refused by 'arenas': 6 MiB in use of 8 MiB",
          "'process': 6 MiB in use of no limit; 'arenas' 6 MiB"}) {
        EXPECT_NE(text.find(part), std::string::npos) << part << " is missing in\n" << text;
    }
    EXPECT_THROW(arena.reserve(9 * mib), AllocationError);
    EXPECT_EQ(testing::ArenaUsage(arena), before);
    EXPECT_EQ(arena.statistics().refusals, 3U);
    EXPECT_EQ(budget.statistics().refusals, 3U);
    EXPECT_EQ(budget.in_use(), 6 * mib);
    EXPECT_NE(arena.allocate(2 * mib), nullptr);
    EXPECT_EQ(budget.statistics().peak_bytes, 8 * mib);
}

INSTANTIATE_TEST_SUITE_P(Sharings, RefusingArena,
                         ::testing::Values(Sharing::any_thread, Sharing::one_thread));

TEST(ArenaBudget, SurplusOfGrowthIsCutToTheLimit) {
    Budget budget("arenas", {.hard = 8 * mib});
    ArenaOptions options = options_with(budget);
    options.growth = {.step = 64 * mib, .factor = 0.0, .fraction = 1.0};
    Arena arena(options);
    (void)arena.allocate(mib);
    EXPECT_EQ(arena.capacity(), 8 * mib);
}

TEST(ArenaBudget, RefusalOfTheSystemNamesNoBudget) {
    Budget budget("arenas");
    Arena arena(options_with(budget));
    const std::string text = message_of<AllocationError>([&] { (void)arena.allocate(65 * mib); });
    EXPECT_NE(text.find("max_capacity"), std::string::npos) << text;
    EXPECT_EQ(text.find("'arenas'"), std::string::npos) << text;
    EXPECT_EQ(budget.in_use(), 0U);
}

/// An arena that is released when the budget needs memory. It allocates while it gives.
class Cache : public MemoryHolder {
public:
    Cache(Budget& budget, Arena* used_while_giving = nullptr)
        : arena_([&] {
              ArenaOptions options = options_with(budget);
              options.retain = 0;
              return options;
          }()),
          used_while_giving_(used_while_giving),
          registration_(budget.add_holder(*this, {.name = "cache"})) {
        (void)arena_.allocate(6 * mib);
    }
    std::size_t available() const noexcept override { return arena_.used(); }
    std::size_t give(std::size_t) noexcept override {
        const std::size_t given = arena_.used();
        arena_.reset();
        if (used_while_giving_ != nullptr) {
            allocated_ = used_while_giving_->try_allocate(mib) != nullptr;
        }
        return given;
    }
    bool allocated() const noexcept { return allocated_; }

private:
    Arena arena_;
    Arena* used_while_giving_;
    bool allocated_ = false;
    HolderRegistration registration_;
};

TEST(ArenaBudget, HoldersAreAskedBeforeARefusal) {
    Budget budget("arenas", {.hard = 8 * mib});
    Cache cache(budget);
    Arena arena(options_with(budget));
    EXPECT_NE(arena.allocate(5 * mib), nullptr);
    EXPECT_EQ(arena.statistics().refusals, 0U);
    EXPECT_EQ(budget.statistics().refusals, 0U);
    EXPECT_EQ(budget.statistics().peak_bytes, 6 * mib);
}

TEST(ArenaBudget, HoldersAreAskedForReserveAndForTheInitialCapacity) {
    Budget budget("arenas", {.hard = 8 * mib});
    std::optional<Cache> cache(std::in_place, budget);
    Arena arena(options_with(budget));
    arena.reserve(7 * mib);
    EXPECT_EQ(budget.in_use(), 7 * mib);
    arena.trim();
    cache.reset();
    cache.emplace(budget);
    ArenaOptions options = options_with(budget);
    options.initial_capacity = 5 * mib;
    Arena other(options);
    EXPECT_NE(other.allocate(100), nullptr);
    EXPECT_EQ(budget.in_use(), 5 * mib);
}

TEST(ArenaBudget, HolderMayAllocateFromTheArenaThatAsks) {
    Budget budget("arenas", {.hard = 8 * mib});
    Arena arena(options_with(budget));
    Cache cache(budget, &arena);
    EXPECT_NE(arena.allocate(5 * mib), nullptr);
    EXPECT_TRUE(cache.allocated());
    EXPECT_EQ(arena.used(), 6 * mib);
}

TEST(ArenaBudget, SoftLimitMakesHoldersGiveFirst) {
    Budget budget("arenas", {.soft = 8 * mib});
    Cache cache(budget);
    Arena arena(options_with(budget));
    EXPECT_NE(arena.allocate(5 * mib), nullptr);
    EXPECT_EQ(budget.in_use(), 5 * mib);
    EXPECT_NE(arena.allocate(5 * mib), nullptr);
    EXPECT_EQ(budget.in_use(), 10 * mib) << "a soft limit refuses nothing";
}

TEST(ArenaBudget, BudgetMayEndBeforeItsArena) {
    Budget process("process");
    std::optional<Budget> budget(std::in_place, process, "arenas", BudgetLimits{.hard = 4 * mib});
    std::optional<Arena> arena(std::in_place, options_with(*budget));
    (void)arena->allocate(mib);
    budget.reset();
    EXPECT_EQ(process.in_use(), mib);
    EXPECT_NE(arena->allocate(16 * mib), nullptr) << "the limit ended with the budget";
    EXPECT_EQ(process.in_use(), 17 * mib);
    arena.reset();
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(ArenaBudget, ArenasWithoutMemoryOfTheirOwnChargeNothing) {
    Budget budget("arenas", {.hard = mib});
    std::vector<std::byte> buffer(4 * mib);
    Arena over = Arena::over(buffer, options_with(budget));
    EXPECT_NE(over.allocate(3 * mib), nullptr);
    Arena measuring = Arena::measuring(options_with(budget));
    EXPECT_NE(measuring.allocate(gib / 2), nullptr);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(ArenaBudget, ContextChargesItsArena) {
    Budget budget("contexts", {.hard = 4 * mib});
    ContextOptions options;
    options.arena = options_with(budget);
    Context context(options);
    (void)context.allocate(3 * mib);
    EXPECT_EQ(budget.in_use(), 3 * mib);
    EXPECT_THROW((void)context.allocate(3 * mib), AllocationError);
}

TEST(ArenaBudget, ThreadsNeverExceedTheLimitAndLoseNothing) {
    constexpr unsigned count = 8;
    Budget budget("arenas", {.hard = 16 * mib});
    Cache cache(budget);
    Arena arena(options_with(budget));
    std::vector<std::thread> threads;
    std::vector<std::size_t> got(count);
    for (unsigned number = 0; number != count; ++number) {
        threads.emplace_back([&, number] {
            for (unsigned step = 0; step != 3000; ++step) {
                const std::size_t bytes = 64 * (1 + (step * 37 + number) % 1000);
                try {
                    (void)arena.allocate(bytes);
                    got[number] += bytes;
                } catch (const AllocationError&) {
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    std::size_t sum = 0;
    for (const std::size_t bytes : got) sum += bytes;
    EXPECT_EQ(arena.used(), sum);
    EXPECT_EQ(arena.capacity(), 16 * mib) << "the cache gave what it held";
    EXPECT_EQ(budget.in_use(), arena.capacity());
    EXPECT_EQ(budget.statistics().peak_bytes, 16 * mib);
}

}  // namespace
}  // namespace tensorpool
