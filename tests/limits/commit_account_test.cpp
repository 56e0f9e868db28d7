#include "limits/commit_budget.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "limits/fake_system.hpp"

namespace tensorpool::limits {
namespace {

using testing::FakeSystem;

constexpr std::size_t page = 4096;

class CommitAccountTest : public ::testing::Test {
protected:
    void SetUp() override { FakeSystem::set(1000 * page, 0); }
    static std::size_t take(CommitAccount& account, std::size_t needed, std::size_t wanted) {
        BudgetRequest request;
        return account.take(needed, wanted, 1.0, page, request);
    }

    CommitBudget process_{FakeSystem::source()};
    Budget budget_{"pools", {.hard = 100 * page}};
    CommitAccount account_{process_, BudgetAccess::node_of(&budget_)};
};

TEST_F(CommitAccountTest, ChargesBudgetAndProcess) {
    EXPECT_EQ(take(account_, page, 10 * page), 10 * page);
    EXPECT_EQ(budget_.in_use(), 10 * page);
    EXPECT_EQ(process_.committed(), 10 * page);
    account_.give_back(10 * page);
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(process_.committed(), 0U);
}

TEST_F(CommitAccountTest, SurplusIsLimitedByTheBudget) {
    EXPECT_EQ(take(account_, page, 500 * page), 100 * page);
    account_.give_back(100 * page);
}

TEST_F(CommitAccountTest, SurplusNeverExceedsASoftLimit) {
    class Empty : public MemoryHolder {
        std::size_t available() const noexcept override { return 0; }
        std::size_t give(std::size_t) noexcept override { return 0; }
    } holder;
    Budget budget("pools", {.soft = 10 * page});
    const HolderRegistration registration = budget.add_holder(holder);
    CommitAccount account(process_, BudgetAccess::node_of(&budget));
    BudgetRequest request;
    EXPECT_EQ(account.take(page, 500 * page, 1.0, page, request), 10 * page);
    EXPECT_EQ(account.take(page, 500 * page, 1.0, page, request), 0U);
    EXPECT_TRUE(request.may_retry());
    EXPECT_EQ(account.take(page, 500 * page, 1.0, page, request), page);
    account.give_back(11 * page);
}

TEST_F(CommitAccountTest, BudgetRefusesBeforeTheProcessIsCharged) {
    BudgetRequest request;
    EXPECT_EQ(account_.take(101 * page, 101 * page, 1.0, page, request), 0U);
    EXPECT_TRUE(request.is_refused());
    EXPECT_EQ(process_.committed(), 0U);
    const base::Refusal refusal = account_.refuse(101 * page, false, request);
    EXPECT_STREQ(refusal.limit, "the budget's hard limit");
    EXPECT_EQ(refusal.limit_bytes, 100 * page);
    EXPECT_EQ(refusal.needed_limit, 101 * page);
}

TEST_F(CommitAccountTest, RefusalOfTheProcessGivesTheBudgetItsBytesBack) {
    FakeSystem::set(10 * page, 0);
    BudgetRequest request;
    EXPECT_EQ(account_.take(20 * page, 20 * page, 1.0, page, request), 0U);
    EXPECT_FALSE(request.is_refused());
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(take(account_, page, 20 * page), 10 * page);
    EXPECT_EQ(budget_.in_use(), 10 * page);
    account_.give_back(10 * page);
}

TEST_F(CommitAccountTest, RefusedSystemCallGivesBothTheirBytesBack) {
    BudgetRequest request;
    const auto refuse = [](std::size_t) { return false; };
    EXPECT_EQ(account_.take_and_get(page, 8 * page, 1.0, page, request, refuse), 0U);
    EXPECT_EQ(budget_.in_use(), 0U);
    EXPECT_EQ(process_.committed(), 0U);
}

TEST_F(CommitAccountTest, ChargesOutliveTheBudgetWithItsParent) {
    Budget process("process", {.hard = 50 * page});
    std::optional<Budget> request(std::in_place, process, "request");
    CommitAccount account(process_, BudgetAccess::node_of(&*request));
    EXPECT_EQ(take(account, 20 * page, 20 * page), 20 * page);
    request.reset();
    EXPECT_EQ(process.in_use(), 20 * page);
    EXPECT_EQ(take(account, 31 * page, 31 * page), 0U) << "the parent's limit counts";
    EXPECT_EQ(take(account, 30 * page, 30 * page), 30 * page);
    account.give_back(50 * page);
    EXPECT_EQ(process.in_use(), 0U);
}

}  // namespace
}  // namespace tensorpool::limits
