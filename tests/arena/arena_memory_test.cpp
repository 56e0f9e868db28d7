#include "arena/arena_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "arena/arena_table.hpp"
#include "arena/arena_test.hpp"
#include "base/alignment.hpp"
#include "limits/commit_budget.hpp"
#include "pages/failing_system.hpp"
#include "platform/platform.hpp"

namespace tensorpool::arena {
namespace {

using base::align_down;
using base::align_up;
using platform::page_bytes;
using testing::Failing;
using testing::gib;
using testing::kib;
using testing::mib;
using testing::SystemCall;

std::size_t committed() {
    return limits::commit_budget().committed();
}

class ArenaMemoryTest : public ::testing::Test {
protected:
    void reserve(std::size_t bytes = gib) { ASSERT_TRUE(memory_.reserve(bytes, 64)); }
    std::size_t grow_to(std::size_t end, const GrowthPolicy& growth = no_surplus) {
        attempt_ = {};
        return memory_.grow_to(end, growth, attempt_);
    }
    std::uint64_t capacity() const { return totals_.capacity_bytes; }

    statistics::ArenaTotals totals_;
    ArenaMemory memory_{totals_};
    Attempt attempt_;
};

TEST_F(ArenaMemoryTest, StartsEmpty) {
    EXPECT_EQ(memory_.base(), nullptr);
    EXPECT_EQ(memory_.end(), 0U);
    EXPECT_EQ(grow_to(1), 0U);
}

TEST_F(ArenaMemoryTest, ReservesWholePagesAndGrowsToTheByte) {
    reserve(100'001);
    EXPECT_EQ(memory_.limit(), 100'001U);
    EXPECT_EQ(memory_.reserved(), align_up(100'001, page_bytes()));
    EXPECT_TRUE(base::is_aligned(memory_.base(), 2 * mib));
    EXPECT_EQ(grow_to(100'002), 0U);
    EXPECT_STREQ(attempt_.refusal.limit, "max_capacity");
    EXPECT_EQ(attempt_.refusal.limit_bytes, 100'001U);
    EXPECT_EQ(grow_to(100'001), memory_.reserved());
    EXPECT_EQ(memory_.end(), 100'001U) << "the rest of the last page is beyond the limit";
    std::memset(memory_.base(), 1, 100'001);
}

TEST_F(ArenaMemoryTest, WithoutALimitReservesTwiceTheTotalMemory) {
    reserve(0);
    const std::size_t twice = 2 * platform::total_memory();
    EXPECT_EQ(memory_.limit(), std::min(twice, std::size_t{1} << 47));
    EXPECT_EQ(grow_to(SIZE_MAX), 0U);
    EXPECT_STREQ(attempt_.refusal.limit, "reserved address space");
}

TEST_F(ArenaMemoryTest, ImpossibleReservationFails) {
    EXPECT_FALSE(memory_.reserve(SIZE_MAX, std::size_t{1} << 62));
    EXPECT_EQ(memory_.base(), nullptr);
}

TEST_F(ArenaMemoryTest, GrowsByMissingBytesInWholePages) {
    reserve();
    EXPECT_EQ(grow_to(1), page_bytes());
    EXPECT_EQ(grow_to(page_bytes() + 1), page_bytes());
    EXPECT_EQ(grow_to(10 * mib + 1), 10 * mib + page_bytes() - 2 * page_bytes());
    EXPECT_EQ(totals_.growths, 3U);
    EXPECT_EQ(totals_.grown_bytes, capacity());
    EXPECT_EQ(capacity(), 10 * mib + page_bytes());
}

TEST_F(ArenaMemoryTest, GrowsByTheStepOrByMissingBytes) {
    reserve();
    const GrowthPolicy growth{.step = 3 * mib + 1, .factor = 0.0, .fraction = 1.0};
    EXPECT_EQ(grow_to(1, growth), 3 * mib + page_bytes());
    EXPECT_EQ(grow_to(capacity() + 5 * mib, growth), 5 * mib);
}

TEST_F(ArenaMemoryTest, GrowsByTheFactorOfItsCapacity) {
    reserve();
    const GrowthPolicy growth{.step = mib, .factor = 0.5, .fraction = 1.0};
    grow_to(16 * mib);
    EXPECT_EQ(grow_to(16 * mib + 1, growth), 8 * mib);
    EXPECT_EQ(grow_to(24 * mib + 1, growth), 12 * mib);
    EXPECT_EQ(grow_to(36 * mib + 100 * mib, growth), 100 * mib);
}

TEST_F(ArenaMemoryTest, GrowsByThePresets) {
    reserve(16 * gib);
    EXPECT_EQ(grow_to(1, GrowthPolicy::conservative()), 64 * mib);
    EXPECT_EQ(grow_to(64 * mib + 1, GrowthPolicy::conservative()), 64 * mib);
    EXPECT_EQ(grow_to(128 * mib + 1, GrowthPolicy::conservative()), 128 * mib) << "it doubles";
    for (const GrowthPolicy& growth : {GrowthPolicy::doubling(), GrowthPolicy::aggressive()}) {
        // On a small machine no more than the fraction, save the shortfall of one page.
        const double ceiling = static_cast<double>(limits::commit_budget().ceiling());
        const auto most = static_cast<std::size_t>(ceiling * 0.75);
        const std::size_t allowed = most - std::min(most, committed());
        const double by_factor = static_cast<double>(capacity()) * growth.factor;
        const std::size_t wanted = std::max(2 * gib, static_cast<std::size_t>(by_factor));
        const std::size_t expected = align_down(std::min(wanted, allowed), page_bytes());
        EXPECT_EQ(grow_to(capacity() + 1, growth), std::max(expected, page_bytes()));
    }
}

TEST_F(ArenaMemoryTest, SurplusEndsAtTheReservation) {
    reserve(10 * mib);
    const GrowthPolicy steps{.step = 4 * mib, .factor = 0.0, .fraction = 1.0};
    EXPECT_EQ(grow_to(1, steps), 4 * mib);
    EXPECT_EQ(grow_to(4 * mib + 1, steps), 4 * mib);
    EXPECT_EQ(grow_to(8 * mib + 1, steps), 2 * mib);
    EXPECT_EQ(grow_to(10 * mib + 1, steps), 0U);
}

TEST_F(ArenaMemoryTest, HugeSurplusEndsAtTheReservation) {
    reserve(10 * mib);
    grow_to(mib);
    EXPECT_EQ(grow_to(2 * mib, {.step = SIZE_MAX, .factor = 1024, .fraction = 1.0}), 9 * mib);
}

TEST_F(ArenaMemoryTest, SurplusEndsAtTheFractionOfTheAvailableMemory) {
    reserve(8 * gib);
    ASSERT_NE(grow_to(mib), 0U);
    const double ceiling = static_cast<double>(limits::commit_budget().ceiling());
    const std::size_t before = committed();
    GrowthPolicy growth{.step = 4 * gib, .factor = 0.0, .fraction = 0.0};
    EXPECT_EQ(grow_to(2 * mib, growth), mib) << "without surplus, but as much as needed";
    growth.fraction = static_cast<double>(before + 50 * mib) / ceiling;
    const std::size_t grown = grow_to(3 * mib, growth);
    const double now = static_cast<double>(limits::commit_budget().ceiling());
    const auto allowed = static_cast<std::size_t>(now * growth.fraction);
    EXPECT_EQ(grown, align_down(allowed - before - mib, page_bytes()));
    EXPECT_LE(committed(), allowed);
}

TEST_F(ArenaMemoryTest, GrowthTouchesNoPages) {
    reserve();
    const std::size_t resident = platform::resident_memory();
    grow_to(512 * mib);
    EXPECT_LT(platform::resident_memory(), resident + 64 * mib);
}

TEST_F(ArenaMemoryTest, GrowthBeyondAvailableMemoryIsRefused) {
    reserve(0);
    grow_to(mib);
    const std::size_t before = committed();
    // The limit is twice the total memory.
    EXPECT_EQ(grow_to(memory_.limit()), 0U);
    EXPECT_STREQ(attempt_.refusal.limit, "available memory");
    EXPECT_EQ(attempt_.refusal.limit_bytes, limits::commit_budget().ceiling());
    EXPECT_EQ(committed(), before);
    EXPECT_EQ(capacity(), mib);
}

TEST_F(ArenaMemoryTest, RetriesWithoutSurplusAfterARefusal) {
    reserve();
    const std::size_t before = committed();
    const Failing failing(SystemCall::commit_pages, 0, 1);
    EXPECT_EQ(grow_to(mib, {.step = 8 * mib, .factor = 0.0, .fraction = 1.0}), mib);
    EXPECT_EQ(memory_.end(), mib);
    EXPECT_EQ(committed() - before, mib);
    EXPECT_EQ(capacity(), mib);
}

TEST_F(ArenaMemoryTest, RefusalByTheSystemChangesNothing) {
    reserve();
    grow_to(mib);
    const std::size_t before = committed();
    {
        const Failing failing(SystemCall::commit_pages);
        EXPECT_EQ(grow_to(2 * mib, {.step = 8 * mib, .factor = 0.0, .fraction = 1.0}), 0U);
    }
    EXPECT_STREQ(attempt_.refusal.limit, "what the system commits");
    EXPECT_EQ(memory_.end(), mib);
    EXPECT_EQ(committed(), before);
    EXPECT_EQ(capacity(), mib);
    EXPECT_EQ(totals_.growths, 1U);
    EXPECT_EQ(grow_to(2 * mib), mib);
}

TEST_F(ArenaMemoryTest, GivesBackWholePagesAboveAnOffset) {
    reserve(mib + 100);
    grow_to(mib + 100);
    const std::size_t before = committed();
    EXPECT_EQ(memory_.give_back_above(mib + 1), 0U);
    EXPECT_EQ(memory_.end(), mib + 100);
    EXPECT_EQ(memory_.give_back_above(mib), page_bytes());
    EXPECT_EQ(memory_.give_back_above(mib - page_bytes() + 1), 0U);
    EXPECT_EQ(memory_.give_back_above(100), mib - page_bytes());
    EXPECT_EQ(memory_.end(), page_bytes());
    EXPECT_EQ(before - committed(), mib);
    EXPECT_EQ(totals_.give_backs, 2U);
    EXPECT_EQ(totals_.given_back_bytes, mib);
    EXPECT_EQ(totals_.peak_capacity_bytes, mib + page_bytes());
}

TEST(ArenaMemory, DestructorReturnsEverythingToTheBudget) {
    const std::size_t before = committed();
    for (int i = 0; i < 20; ++i) {
        statistics::ArenaTotals totals;
        ArenaMemory memory(totals);
        ASSERT_TRUE(memory.reserve(mib + 1, 64));
        Attempt attempt;
        ASSERT_NE(memory.grow_to(mib + 1, GrowthPolicy::conservative(), attempt), 0U);
        if (i % 2 == 0) memory.give_back_above(100 * kib);
        if (i % 3 == 0) {
            const Failing failing(SystemCall::commit_pages);
            memory.grow_to(mib + 1, GrowthPolicy::conservative(), attempt);
        }
    }
    EXPECT_EQ(committed(), before);
}

}  // namespace
}  // namespace tensorpool::arena
