#include "limits/commit_budget.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "limits/fake_system.hpp"
#include "platform/platform.hpp"

namespace tensorpool::limits {
namespace {

using testing::FakeSystem;

constexpr std::size_t mib = std::size_t{1} << 20;

TEST(CommitBudget, TakesWantedBytesIfAvailable) {
    FakeSystem::set(1000 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(mib, 4 * mib, 0.75, 4096), 4 * mib);
    EXPECT_EQ(budget.committed(), 4 * mib);
    budget.give_back(4 * mib);
    EXPECT_EQ(budget.committed(), 0U);
}

TEST(CommitBudget, ReadsWhatIsAvailableTenTimesASecondIfItIsMuch) {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_TRUE(budget.has_available(10 * mib, 5 * second_ns));
    FakeSystem::set(9 * mib, 0);
    EXPECT_TRUE(budget.has_available(10 * mib, 5 * second_ns + 1)) << "read a moment ago";
    EXPECT_FALSE(budget.has_available(26 * mib, 5 * second_ns + 2)) << "not much more";
    FakeSystem::set(100 * mib, 0);
    EXPECT_TRUE(budget.has_available(10 * mib, 6 * second_ns));
    FakeSystem::set(9 * mib, 0);
    EXPECT_FALSE(budget.has_available(10 * mib, 6 * second_ns + second_ns / 10));
    EXPECT_FALSE(budget.has_available(10 * mib, second_ns)) << "the clock went back";
}

TEST(CommitBudget, SurplusIsLimitedByFraction) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(70 * mib, 70 * mib, 0.75, 4096), 70 * mib);
    EXPECT_EQ(budget.take(mib, 50 * mib, 0.75, 4096), 5 * mib) << "up to 75 of 100 MiB";
    EXPECT_EQ(budget.take(mib, 50 * mib, 0.75, 4096), mib) << "only the needed bytes beyond it";
}

TEST(CommitBudget, NeededBytesMayUseAllAvailableMemory) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(100 * mib, 100 * mib, 0.75, 4096), 100 * mib);
    EXPECT_EQ(budget.take(4096, 4096, 0.75, 4096), 0U);
    EXPECT_EQ(budget.committed(), 100 * mib) << "a refusal takes nothing";
    budget.give_back(mib);
    EXPECT_EQ(budget.take(mib, mib, 0.75, 4096), mib);
}

TEST(CommitBudget, CommittedResidentMemoryCountsAsAvailable) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(40 * mib, 40 * mib, 1.0, 4096), 40 * mib);
    FakeSystem::set(60 * mib, 40 * mib);
    EXPECT_EQ(budget.take(60 * mib, 60 * mib, 0.5, 4096), 60 * mib);
    EXPECT_EQ(budget.ceiling(), 100 * mib);
    EXPECT_EQ(budget.take(4096, 4096, 1.0, 4096), 0U);
}

TEST(CommitBudget, OtherResidentMemoryDoesNotCountAsAvailable) {
    FakeSystem::set(60 * mib, 40 * mib);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(61 * mib, 61 * mib, 1.0, 4096), 0U);
    EXPECT_EQ(budget.take(60 * mib, 60 * mib, 1.0, 4096), 60 * mib);
    FakeSystem::set(0, 100 * mib);
    EXPECT_EQ(budget.take(4096, 4096, 1.0, 4096), 0U);
    EXPECT_EQ(budget.ceiling(), 60 * mib);
}

TEST(CommitBudget, RetriesWithoutSurplusIfSystemRefuses) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    CommitAccount account(budget);
    std::vector<std::size_t> tried;
    const auto get_at_most = [&](std::size_t limit) {
        BudgetRequest request;
        return account.take_and_get(mib, 4 * mib, 0.75, 4096, request, [&](std::size_t bytes) {
            tried.push_back(bytes);
            return bytes <= limit;
        });
    };
    EXPECT_EQ(get_at_most(4 * mib), 4 * mib);
    EXPECT_EQ(budget.committed(), 4 * mib);
    EXPECT_EQ(get_at_most(mib), mib);
    EXPECT_EQ(budget.committed(), 5 * mib);
    EXPECT_EQ(get_at_most(0), 0U);
    EXPECT_EQ(budget.committed(), 5 * mib);
    EXPECT_EQ(tried, (std::vector{4 * mib, 4 * mib, mib, 4 * mib, mib}));
}

TEST(CommitBudget, TakesWholeUnits) {
    FakeSystem::set(10 * 4096 + 1000, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(4096, 100 * 4096, 1.0, 4096), 10U * 4096);
}

TEST(CommitBudget, RereadsMemoryBeforeRefusing) {
    FakeSystem::set(10 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(10 * mib, 10 * mib, 1.0, 4096), 10 * mib);
    FakeSystem::set(20 * mib, 10 * mib);
    EXPECT_EQ(budget.take(15 * mib, 15 * mib, 1.0, 4096), 15 * mib) << "another process ended";
}

TEST(CommitBudget, DetectsMemoryShortage) {
    FakeSystem::set(640 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(mib, mib, 1.0, 4096), mib);
    FakeSystem::set(mib, mib);
    // More than a sixty-fourth of the available memory, so the budget reads it again.
    EXPECT_EQ(budget.take(10 * mib, 10 * mib, 1.0, 4096), 0U);
    EXPECT_EQ(budget.committed(), mib);
}

TEST(CommitBudget, RereadsMemoryWhenReturnedBytesAreTakenAgain) {
    FakeSystem::set(640 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(590 * mib, 590 * mib, 1.0, 4096), 590 * mib);
    FakeSystem::set(50 * mib, 590 * mib);
    EXPECT_EQ(budget.take(10 * mib, 10 * mib, 1.0, 4096), 10 * mib);
    budget.give_back(500 * mib);
    FakeSystem::set(20 * mib, 100 * mib);  // another process took the rest
    EXPECT_EQ(budget.take(30 * mib, 30 * mib, 1.0, 4096), 0U);
    EXPECT_EQ(budget.take(20 * mib, 20 * mib, 1.0, 4096), 20 * mib);
}

TEST(CommitBudget, UntouchedMemoryDoesNotBlockAvailableMemory) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(90 * mib, 90 * mib, 1.0, 4096), 90 * mib);
    FakeSystem::set(95 * mib, 5 * mib, 80 * mib);
    EXPECT_EQ(budget.take(91 * mib, 91 * mib, 1.0, 4096), 0U)
        << "10 MiB were handed out, 5 MiB are left";
    EXPECT_EQ(budget.take(90 * mib, 120 * mib, 1.0, 4096), 90 * mib) << "no surplus is granted";
    FakeSystem::set(5 * mib, 95 * mib, 80 * mib);
    EXPECT_EQ(budget.take(6 * mib, 6 * mib, 1.0, 4096), 0U);
}

TEST(CommitBudget, MemoryThatIsKeptOutDoesNotBlockAvailableMemory) {
    FakeSystem::set(100 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(90 * mib, 90 * mib, 1.0, 4096), 90 * mib);
    budget.keep_out(80 * mib);
    FakeSystem::set(70 * mib, 30 * mib);
    EXPECT_EQ(budget.take(71 * mib, 71 * mib, 1.0, 4096), 0U) << "10 MiB are in memory";
    EXPECT_EQ(budget.take(70 * mib, 70 * mib, 1.0, 4096), 70 * mib);
    budget.let_in(80 * mib);
    FakeSystem::set(9 * mib, 91 * mib);
    EXPECT_EQ(budget.take(mib, mib, 1.0, 4096), 0U) << "160 of 100 MiB are committed";
}

TEST(CommitBudget, RarelyRereadsWhileMemoryIsPlentiful) {
    FakeSystem::set(6400 * mib, 0);
    CommitBudget budget(FakeSystem::source());
    FakeSystem::looks = 0;
    for (int i = 0; i < 90; ++i) ASSERT_EQ(budget.take(mib, mib, 1.0, 4096), mib);
    EXPECT_EQ(FakeSystem::looks, 1U);
}

TEST(CommitBudget, MissesWhatIsNotLeftOfAPart) {
    const CommitBudget budget(FakeSystem::source());
    FakeSystem::set(10 * mib, 150 * mib);
    EXPECT_EQ(budget.missing_bytes(16), 0U);
    EXPECT_EQ(budget.missing_bytes(8), 10 * mib);
}

TEST(CommitBudget, ShortWhenLessThanOneSixteenthIsLeft) {
    const CommitBudget budget(FakeSystem::source());
    FakeSystem::set(10 * mib, 150 * mib);
    EXPECT_FALSE(budget.short_of_memory());
    FakeSystem::set(10 * mib - 1, 150 * mib + 1);
    EXPECT_TRUE(budget.short_of_memory());
}

TEST(CommitBudget, SystemWithoutALimitNeverRefuses) {
    FakeSystem::set(SIZE_MAX, 40 * mib);
    CommitBudget budget(FakeSystem::source());
    FakeSystem::looks = 0;
    for (int i = 0; i < 90; ++i) ASSERT_EQ(budget.take(mib, 2 * mib, 1.0, 4096), 2 * mib);
    EXPECT_EQ(budget.take(mib, 2 * mib, 0.75, 4096), 2 * mib);
    EXPECT_EQ(FakeSystem::looks, 1U) << "the committed bytes are far below the limit";
    EXPECT_EQ(budget.ceiling(), SIZE_MAX);
    EXPECT_FALSE(budget.short_of_memory());
}

TEST(CommitBudget, UnlimitedSystemGrantsSizeMax) {
    FakeSystem::set(SIZE_MAX, 0);
    CommitBudget budget(FakeSystem::source());
    EXPECT_EQ(budget.take(SIZE_MAX, SIZE_MAX, 1.0, 1), SIZE_MAX);
    EXPECT_EQ(budget.take(1, 1, 1.0, 1), 0U);
    EXPECT_EQ(budget.committed(), SIZE_MAX);
}

TEST(CommitBudget, ConcurrentThreadsNeverExceedAvailableMemory) {
    constexpr std::size_t pages = 10'000;
    FakeSystem::set(pages * 4096, 0);
    CommitBudget budget(FakeSystem::source());
    std::vector<std::size_t> taken(4, 0);
    std::vector<std::thread> workers;
    for (std::size_t& mine : taken) {
        workers.emplace_back([&budget, &mine] {
            while (const std::size_t bytes = budget.take(4096, 3 * 4096, 0.9, 4096)) mine += bytes;
        });
    }
    for (std::thread& worker : workers) worker.join();
    EXPECT_EQ(taken[0] + taken[1] + taken[2] + taken[3], pages * 4096);
    EXPECT_EQ(budget.committed(), pages * 4096);
}

TEST(CommitBudget, ProcessBudgetUsesPlatform) {
    CommitBudget& budget = commit_budget();
    const std::size_t before = budget.committed();
    ASSERT_EQ(budget.take(4096, 4096, 1.0, 4096), 4096U);
    EXPECT_GT(budget.ceiling(), std::size_t{16} << 20);
    EXPECT_LE(budget.ceiling(), platform::total_memory() + platform::resident_memory());
    budget.give_back(4096);
    EXPECT_EQ(budget.committed(), before);
}

}  // namespace
}  // namespace tensorpool::limits
