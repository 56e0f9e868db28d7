#include "limits/ladder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/budget.hpp>

#include "limits/budget_node.hpp"
#include "limits/charged.hpp"

namespace tensorpool::limits {
namespace {

/// What the rungs below are called with.
struct Calls {
    std::vector<std::string> rungs;
    std::vector<std::size_t> bytes;
    std::size_t second_gives = 0;
    unsigned incomplete = 0;  // climbs in which the first rung leaves something
};

Calls& calls_in(Lack& lack) {
    return *static_cast<Calls*>(lack.kept);
}

constexpr Rung first{"first", [](Lack& lack) noexcept -> std::size_t {
                         Calls& calls = calls_in(lack);
                         calls.rungs.emplace_back("first");
                         calls.bytes.push_back(lack.bytes);
                         if (calls.incomplete != 0 && calls.incomplete-- != 0) lack.is_all = false;
                         return 0;
                     }};
constexpr Rung second{"second", [](Lack& lack) noexcept {
                          Calls& calls = calls_in(lack);
                          calls.rungs.emplace_back("second");
                          calls.bytes.push_back(lack.bytes);
                          return calls.second_gives;
                      }};
constexpr Rung last{"last", [](Lack& lack) noexcept {
                        Calls& calls = calls_in(lack);
                        calls.rungs.emplace_back("last");
                        calls.bytes.push_back(lack.bytes);
                        return lack.bytes;
                    }};

using Names = std::vector<std::string>;

class LadderTest : public ::testing::Test {
protected:
    LadderTest() {
        ladder_.set(4, second);
        ladder_.set(1, first);
    }

    Ladder ladder_{last};
    Calls calls_;
    BudgetRequest unlimited_;
};

TEST_F(LadderTest, IsClimbedByPositionWhateverTheOrderInWhichRungsWereSet) {
    Lack lack{.bytes = 100, .kept = &calls_};
    EXPECT_EQ(ladder_.climb(lack), 100U);
    EXPECT_EQ(calls_.rungs, (Names{"first", "second", "last"}));
    EXPECT_TRUE(lack.is_all);
}

TEST_F(LadderTest, EachRungIsAskedForWhatIsStillMissing) {
    calls_.second_gives = 30;
    Lack lack{.bytes = 100, .kept = &calls_};
    EXPECT_EQ(ladder_.climb(lack), 100U);
    EXPECT_EQ(calls_.bytes, (std::vector<std::size_t>{100, 100, 70}));
}

TEST_F(LadderTest, EndsWhereEnoughWasGiven) {
    calls_.second_gives = 150;
    Lack lack{.bytes = 100, .kept = &calls_};
    EXPECT_EQ(ladder_.climb(lack), 150U);
    EXPECT_EQ(calls_.rungs, (Names{"first", "second"}));
}

TEST_F(LadderTest, WithoutRungsGivesNothing) {
    const Ladder none;
    Lack lack{.bytes = 100};
    EXPECT_EQ(none.climb(lack), 0U);
    EXPECT_EQ(lack.bytes, 100U);
}

TEST_F(LadderTest, RequestIsRetriedOnceIfEverythingWasGiven) {
    unsigned tries = 0;
    const auto fails = [&] { return ++tries == 100; };
    EXPECT_FALSE(ladder_.climb(&calls_, unlimited_, fails));
    EXPECT_EQ(tries, 1U);
}

TEST_F(LadderTest, RequestIsRetriedWhileOtherThreadsKeepSomething) {
    calls_.incomplete = 3;
    unsigned tries = 0;
    EXPECT_TRUE(ladder_.climb(&calls_, unlimited_, [&] { return ++tries == 4; }));
    calls_.incomplete = 1'000;
    tries = 0;
    EXPECT_FALSE(ladder_.climb(&calls_, unlimited_, [&] { return ++tries == 100; }));
    EXPECT_EQ(tries, 16U) << "threads may keep it for long";
}

/// Gives what it is asked for, by refunding the budget.
class Holder : public MemoryHolder {
public:
    Holder(Budget& budget, std::size_t bytes)
        : held_(budget, "held"),
          charged_(held_, bytes),
          bytes_(bytes),
          registration_(budget.add_holder(*this)) {}

    std::size_t available() const noexcept override { return bytes_; }
    std::size_t give(std::size_t) noexcept override {
        charged_.give_back();
        return std::exchange(bytes_, 0);
    }

private:
    Budget held_;
    testing::Charged charged_;
    std::size_t bytes_;
    HolderRegistration registration_;
};

TEST_F(LadderTest, HoldersOfTheBudgetThatRefusedAreTheLastRungOfTheProcess) {
    constexpr std::size_t limit = 1 << 20;
    Budget budget("budget", {.hard = limit});
    Holder holder(budget, limit);
    detail::BudgetNode* const node = BudgetAccess::node_of(&budget);
    BudgetRequest request;
    unsigned tries = 0;
    const bool is_met = ladder().climb(nullptr, request, [&] {
        ++tries;
        return node->charge(limit, limit, 1, request) != 0;
    });
    EXPECT_TRUE(is_met);
    EXPECT_EQ(tries, 2U);
    node->refund(limit);
}

}  // namespace
}  // namespace tensorpool::limits
