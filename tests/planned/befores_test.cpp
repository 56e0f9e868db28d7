#include "planned/befores.hpp"

#include <gtest/gtest.h>

#include "planned/plans.hpp"

namespace tensorpool::planned {
namespace {

std::vector<std::uint32_t> befores_of(const Befores& befores, std::size_t slot) {
    return {befores.numbers.begin() + static_cast<std::ptrdiff_t>(befores.first[slot]),
            befores.numbers.begin() + static_cast<std::ptrdiff_t>(befores.first[slot + 1])};
}

using Numbers = std::vector<std::uint32_t>;

TEST(Befores, AreTheSlotsThatComeLastInTurnForSomeByte) {
    const Befores befores = find_befores(testing::small_plan());
    EXPECT_EQ(befores_of(befores, 0), (Numbers{2}));
    EXPECT_EQ(befores_of(befores, 1), (Numbers{2, 3}));
    EXPECT_EQ(befores_of(befores, 2), (Numbers{0, 1}));
    EXPECT_EQ(befores_of(befores, 3), (Numbers{2}));
}

TEST(Befores, OfASlotThatSharesNothingAreItself) {
    const Befores befores = find_befores(testing::plan_of({{0, 1, 2}, {1, 1, 2}}));
    EXPECT_EQ(befores_of(befores, 0), (Numbers{0}));
    EXPECT_EQ(befores_of(befores, 1), (Numbers{1}));
}

TEST(Befores, OfWhatIsLeftToThePoolAreNone) {
    const Befores befores = find_befores(testing::small_plan());
    EXPECT_EQ(befores_of(befores, 4), Numbers());
    EXPECT_EQ(befores.first.size(), 6);
}

TEST(Befores, ComeOnceEachThoughTheyShareBytesInPieces) {
    const Befores befores = find_befores(testing::plan_of({{0, 6, 1}, {2, 2, 2}, {0, 6, 3}}));
    EXPECT_EQ(befores_of(befores, 2), (Numbers{0, 1}));
    EXPECT_EQ(befores_of(befores, 0), (Numbers{2}));
}

TEST(Befores, AreFourTimesAsManyAsSlotsAtMost) {
    LearnedPlan plan;
    for (std::uint32_t i = 0; i < 1000; ++i) {
        testing::add(plan, {i * 7919 % 97, 1 + i * 104729 % 31, i + 1});
    }
    EXPECT_LE(find_befores(plan).numbers.size(), 4000);
}

TEST(Befores, OfNoSlotsAreNone) {
    EXPECT_EQ(find_befores(LearnedPlan{}).first, std::vector<std::size_t>{0});
}

}  // namespace
}  // namespace tensorpool::planned
