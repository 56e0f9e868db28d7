#include <tensorpool/budget.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/errors.hpp>
#include <tensorpool/snapshot.hpp>

#include "limits/budget_node.hpp"
#include "limits/charged.hpp"

namespace tensorpool {
namespace {

std::string text_of_invalid(BudgetLimits limits) {
    try {
        const Budget budget("cache", limits);
    } catch (const std::invalid_argument& error) {
        return error.what();
    }
    return "";
}

TEST(Budget, ChargesCountOnAllLevels) {
    Budget process("process", {.hard = 1000});
    Budget part(process, "part", {.hard = 600});
    Budget request(part, "request");
    {
        const testing::Charged charged(request, 250);
        EXPECT_EQ(request.in_use(), 250U);
        EXPECT_EQ(part.in_use(), 250U);
        EXPECT_EQ(process.in_use(), 250U);
    }
    EXPECT_EQ(process.in_use(), 0U);
    EXPECT_EQ(process.statistics().peak_bytes, 250U);
}

TEST(Budget, WouldFitRespectsEveryLevel) {
    Budget process("process", {.hard = 1000});
    Budget part(process, "part", {.hard = 600});
    EXPECT_TRUE(part.would_fit(600));
    EXPECT_FALSE(part.would_fit(601));
    Budget other(process, "other");
    const testing::Charged charged(other, 500);
    EXPECT_TRUE(part.would_fit(500));
    EXPECT_FALSE(part.would_fit(501));
    EXPECT_FALSE(part.would_fit(SIZE_MAX));
}

TEST(Budget, RefusedChargeNamesEachLevelAndChangesNothing) {
    Budget process("process", {.hard = 1000});
    Budget part(process, "kv-cache");
    Budget first(part, "request-1");
    Budget second(part, "request-2");
    const testing::Charged of_first(first, 300);
    const testing::Charged of_second(second, 600);
    try {
        const testing::Charged more(second, 150);
        FAIL() << "150 B more exceed 1000 B";
    } catch (const AllocationError& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("the budget's hard limit"), std::string::npos) << text;
        EXPECT_NE(text.find("'request-2': 600 B in use of no limit"), std::string::npos) << text;
        EXPECT_NE(text.find("'kv-cache': 900 B in use of no limit; 'request-2' 600 B; 'request-1' "
                            "300 B"),
                  std::string::npos)
            << text;
        EXPECT_NE(text.find("refused by 'process': 900 B in use of 1000 B"), std::string::npos)
            << text;
        EXPECT_NE(text.find("at least 1050 B"), std::string::npos) << text;
    }
    EXPECT_EQ(process.in_use(), 900U);
    EXPECT_EQ(process.statistics().refusals, 1U);
    EXPECT_EQ(second.statistics().refusals, 0U) << "the process refused";
}

TEST(Budget, ContradictoryOrNegativeLimitsAreRefused) {
    EXPECT_EQ(
        text_of_invalid({.soft = 200, .hard = 100}),
        "tensorpool: budget 'cache': the soft limit is 200 B; expected at most the hard limit, "
        "100 B");
    EXPECT_EQ(text_of_invalid({.hard = static_cast<std::size_t>(-1)}),
              "tensorpool: budget 'cache': the hard limit is 18446744073709551615 B; expected at "
              "most 1152921504606846976 B, or 0 for none");
    EXPECT_NE(text_of_invalid({.soft = static_cast<std::size_t>(-5)}), "");
    Budget budget("cache", {.hard = 100});
    EXPECT_THROW(budget.set_limits({.soft = 200, .hard = 100}), std::invalid_argument);
    EXPECT_EQ(budget.limits().hard, 100U);
}

TEST(Budget, LimitBelowWhatIsInUseLetsNothingMoreIn) {
    Budget budget("cache", {.hard = 100});
    testing::Charged charged(budget, 80);
    budget.set_limits({.hard = 50});
    EXPECT_FALSE(budget.would_fit(81)) << "80 B are charged";
    EXPECT_THROW(testing::Charged(budget, 1), AllocationError);
    charged.give_back();
    EXPECT_TRUE(budget.would_fit(50));
    EXPECT_FALSE(budget.would_fit(51));
}

TEST(Budget, RefusalUnderALoweredLimitNamesTheLimitThatSuffices) {
    Budget budget("cache", {.hard = 100});
    const testing::Charged charged(budget, 90);
    budget.set_limits({.hard = 50});
    try {
        const testing::Charged more(budget, 5);
        FAIL();
    } catch (const AllocationError& error) {
        EXPECT_NE(std::string(error.what()).find("at least 95 B"), std::string::npos)
            << error.what();
    }
}

TEST(Budget, LongRefusalNamesTheBudgetThatRefused) {
    const std::string long_name(47, 'x');
    Budget process("process", {.hard = 100});
    std::vector<std::unique_ptr<Budget>> levels;
    std::vector<testing::Charged> charged;
    levels.push_back(std::make_unique<Budget>(process, long_name));
    for (int level = 0; level != 10; ++level) {
        levels.push_back(std::make_unique<Budget>(*levels.back(), long_name));
        charged.emplace_back(*levels.back(), 1);
    }
    try {
        const testing::Charged more(*levels.back(), 200);
        FAIL();
    } catch (const AllocationError& error) {
        EXPECT_NE(std::string(error.what()).find("refused by 'process'"), std::string::npos)
            << error.what();
    }
}

TEST(Budget, SnapshotListsParentsBeforeChildren) {
    Budget process("snapshot-process", {.soft = 5, .hard = 7});
    Budget request(process, "snapshot-request");
    const std::vector<BudgetStatistics> budgets = take_snapshot().budgets;
    std::optional<std::size_t> parent;
    std::optional<std::size_t> child;
    for (std::size_t at = 0; at != budgets.size(); ++at) {
        if (std::string(budgets[at].name) == "snapshot-process") parent = at;
        if (std::string(budgets[at].name) == "snapshot-request") child = at;
    }
    ASSERT_TRUE(parent && child);
    EXPECT_LT(*parent, *child);
    EXPECT_EQ(budgets[*child].parent, budgets[*parent].id);
    EXPECT_EQ(budgets[*parent].parent, 0U);
    EXPECT_EQ(budgets[*parent].soft_bytes, 5U);
    EXPECT_EQ(budgets[*parent].hard_bytes, 7U);
}

TEST(Budget, ThousandsOneAfterAnotherReuseTheirMemory) {
    Budget process("process");
    for (int request = 0; request != 10'000; ++request) {
        Budget budget(process, "request", {.hard = 100});
        const testing::Charged charged(budget, 100);
    }
    EXPECT_EQ(process.in_use(), 0U);
    const std::vector<BudgetStatistics> budgets = take_snapshot().budgets;
    EXPECT_LT(budgets.size(), 100U);
}

TEST(Budget, NeverExceedsItsLimitWithManyThreads) {
    static constexpr std::size_t limit = 1000;
    Budget process("process", {.hard = limit});
    std::vector<std::thread> threads;
    for (int number = 0; number != 8; ++number) {
        threads.emplace_back([&process, number] {
            Budget own(process, "own");
            for (std::size_t step = 0; step != 2'000; ++step) {
                try {
                    const testing::Charged charged(
                        own, 1 + (step * 37 + static_cast<std::size_t>(number)) % 300);
                    EXPECT_LE(process.in_use(), limit);
                } catch (const AllocationError&) {
                    continue;  // the others have it
                }
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(process.in_use(), 0U);
    EXPECT_LE(process.statistics().peak_bytes, limit);
}

}  // namespace
}  // namespace tensorpool
