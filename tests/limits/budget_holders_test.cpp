#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <tensorpool/budget.hpp>
#include <tensorpool/errors.hpp>

#include "limits/charged.hpp"
#include "support/wait_until.hpp"

namespace tensorpool {
namespace {

/// Holds a charge of a child of a budget and gives it when it is asked.
class ChargeHolder : public MemoryHolder {
public:
    ChargeHolder(Budget& budget, std::size_t bytes, HolderOptions options = {})
        : bytes_(bytes),
          held_(budget, "held"),
          charged_(held_, bytes),
          registration_(budget.add_holder(*this, std::move(options))) {}

    std::size_t available() const noexcept override {
        if (before_answering) before_answering();
        return bytes_;
    }
    std::size_t give(std::size_t bytes) noexcept override {
        ++asked;
        last_asked = bytes;
        if (before_giving) before_giving();
        if (given_in != nullptr) given_in->push_back(this);
        const std::size_t kept = std::min(keeps, bytes_);
        keeps = 0;
        charged_.give_back();
        if (kept != 0) charged_ = testing::Charged(held_, kept);
        return std::exchange(bytes_, kept) - kept;
    }

    int asked = 0;
    std::size_t last_asked = 0;
    std::size_t keeps = 0;  // when it is asked first
    std::function<void()> before_answering;
    std::function<void()> before_giving;
    std::vector<ChargeHolder*>* given_in = nullptr;

private:
    std::size_t bytes_;
    Budget held_;
    testing::Charged charged_;
    HolderRegistration registration_;
};

TEST(BudgetHolders, GiveBeforeARequestIsRefused) {
    Budget budget("cache", {.hard = 100});
    ChargeHolder holder(budget, 60);
    const testing::Charged more(budget, 70);
    EXPECT_EQ(holder.asked, 1);
    EXPECT_EQ(holder.last_asked, 30U) << "what is missing";
    EXPECT_EQ(budget.in_use(), 70U);
    const BudgetStatistics now = budget.statistics();
    EXPECT_EQ(now.reclaims, 1U);
    EXPECT_EQ(now.reclaimed_bytes, 60U);
    EXPECT_EQ(now.refusals, 0U);
}

TEST(BudgetHolders, GiveBeforeTheSoftLimitIsExceeded) {
    Budget budget("cache", {.soft = 50, .hard = 100});
    ChargeHolder holder(budget, 40);
    const testing::Charged some(budget, 10);
    EXPECT_EQ(holder.asked, 0);
    const testing::Charged more(budget, 1);
    EXPECT_EQ(holder.asked, 1);
    EXPECT_EQ(budget.in_use(), 11U);
    const testing::Charged beyond(budget, 80);
    EXPECT_EQ(budget.in_use(), 91U) << "a soft limit refuses nothing";
}

TEST(BudgetHolders, AreAskedEvenIfALaterRequestAskedThemMeanwhile) {
    Budget process("process", {.hard = 100});
    Budget part(process, "part", {.hard = 80});
    Budget other(part, "other");
    ChargeHolder first(process, 0);
    ChargeHolder second(part, 40, {.priority = 1});
    const testing::Charged rest(other, 40);
    const testing::Charged apart(process, 20);
    // The first holder has nothing. While it is asked for the process, the part asks the second.
    std::optional<testing::Charged> of_other;
    first.before_answering = [&] {
        if (of_other) return;
        std::thread([&] { of_other.emplace(other, 10); }).join();
    };
    second.keeps = 30;
    const testing::Charged more(process, 30);
    EXPECT_EQ(second.asked, 2);
    EXPECT_LE(process.statistics().peak_bytes, 100U);
}

TEST(BudgetHolders, MemoryThatAnotherThreadFreesMeanwhileIsEnough) {
    Budget budget("cache", {.hard = 100});
    std::optional<testing::Charged> other(std::in_place, budget, 60);
    ChargeHolder holder(budget, 0);
    holder.before_answering = [&] { other.reset(); };
    const testing::Charged more(budget, 70);
    EXPECT_EQ(budget.in_use(), 70U);
    EXPECT_EQ(budget.statistics().refusals, 0U);
}

TEST(BudgetHolders, AreAskedByPriorityThenByCost) {
    Budget process("process", {.hard = 100});
    Budget part(process, "part");
    ChargeHolder last(process, 10, {.priority = 2});
    ChargeHolder second(part, 10, {.priority = 1, .cost_per_byte = 5});
    ChargeHolder first(process, 10, {.priority = 1, .cost_per_byte = 2});
    std::vector<ChargeHolder*> order;
    for (ChargeHolder* holder : {&last, &second, &first}) holder->given_in = &order;
    Budget other(process, "other");
    const testing::Charged rest(other, 70);
    const testing::Charged more(other, 15);
    EXPECT_EQ(order, (std::vector<ChargeHolder*>{&first, &second}));
}

TEST(BudgetHolders, OfOtherBranchesAreNotAskedForALimitOfThisOne) {
    Budget process("process");
    Budget one(process, "one", {.hard = 100});
    Budget other(process, "other");
    ChargeHolder holder(other, 50);
    const testing::Charged charged(one, 100);
    EXPECT_THROW(testing::Charged(one, 1), AllocationError);
    EXPECT_EQ(holder.asked, 0);
}

TEST(BudgetHolders, RefusalSaysWhatTheyGaveAndWhichThereAreInTheirOrder) {
    Budget budget("cache", {.hard = 100});
    ChargeHolder holder(budget, 40, {.name = "masks"});
    ChargeHolder first(budget, 0, {.name = "pictures", .priority = -1});
    const testing::Charged charged(budget, 60);
    try {
        const testing::Charged more(budget, 80);
        FAIL();
    } catch (const AllocationError& error) {
        EXPECT_NE(std::string(error.what()).find("holders gave 40 B: 'pictures', 'masks'\n"),
                  std::string::npos)
            << error.what();
    }
}

TEST(BudgetHolders, AreNotAskedForWhatCannotFit) {
    Budget budget("cache", {.hard = 100});
    ChargeHolder holder(budget, 60);
    EXPECT_THROW(testing::Charged(budget, 101), AllocationError);
    EXPECT_EQ(holder.asked, 0);
    EXPECT_EQ(budget.statistics().refusals, 1U);
    const testing::Charged all(budget, 100);
    EXPECT_EQ(holder.asked, 1);
}

/// Reports that it gave what it keeps.
struct BoastfulHolder : MemoryHolder {
    std::size_t available() const noexcept override { return 1000; }
    std::size_t give(std::size_t bytes) noexcept override {
        ++asked;
        return bytes;
    }
    int asked = 0;
};

TEST(BudgetHolders, ThatGiveLessThanTheySayAreAskedAFewTimesOnly) {
    Budget budget("cache", {.hard = 100});
    BoastfulHolder holder;
    const HolderRegistration registration = budget.add_holder(holder);
    const testing::Charged charged(budget, 60);
    EXPECT_THROW(testing::Charged(budget, 60), AllocationError);
    EXPECT_GE(holder.asked, 1);
    EXPECT_LE(holder.asked, 20);
    EXPECT_EQ(budget.in_use(), 60U);
}

TEST(BudgetHolders, ThatGiveLessThanTheySayDoNotKeepOthersFromBeingAsked) {
    Budget budget("cache", {.hard = 100});
    BoastfulHolder boastful;
    const HolderRegistration registration = budget.add_holder(boastful, {.priority = -1});
    ChargeHolder holder(budget, 60);
    const testing::Charged charged(budget, 60);
    EXPECT_EQ(holder.asked, 1);
    EXPECT_EQ(budget.in_use(), 60U);
}

// Other threads take what the last holder gives, so the charge does not fall.
TEST(BudgetHolders, AreAskedForAllTheyHaveBeforeARequestIsRefusedForWhatAnotherSaid) {
    class Robbed : public MemoryHolder {
    public:
        explicit Robbed(Budget& budget) : held_(budget, "held"), others_(budget, "others") {}
        std::size_t available() const noexcept override { return bytes_; }
        std::size_t give(std::size_t bytes) noexcept override {
            bytes_ -= bytes;
            charged_.give_back();
            if (bytes_ != 0) charged_ = testing::Charged(held_, bytes_);
            taken_ = std::min(taken_ + bytes, std::size_t{51});
            taken_by_others_.give_back();
            taken_by_others_ = testing::Charged(others_, taken_);
            return bytes;
        }

    private:
        std::size_t bytes_ = 60;
        std::size_t taken_ = 1;
        Budget held_;
        Budget others_;
        testing::Charged charged_{held_, bytes_};
        testing::Charged taken_by_others_{others_, taken_};
    };
    Budget budget("cache", {.hard = 100});
    BoastfulHolder boastful;
    BoastfulHolder another;
    const HolderRegistration first = budget.add_holder(boastful, {.priority = -1});
    const HolderRegistration second = budget.add_holder(another, {.priority = -1});
    Robbed robbed(budget);
    const HolderRegistration third = budget.add_holder(robbed);
    const testing::Charged some(budget, 39);
    const testing::Charged more(budget, 10);
    EXPECT_EQ(budget.in_use(), 100U);
}

TEST(BudgetHolders, MayAllocateWhileTheyGive) {
    Budget budget("cache", {.hard = 100});
    ChargeHolder holder(budget, 100);
    holder.before_giving = [&] {
        EXPECT_THROW(testing::Charged(budget, 50), AllocationError) << "no holder is asked for it";
    };
    const testing::Charged more(budget, 70);
    EXPECT_EQ(holder.asked, 1);
}

TEST(BudgetHolders, TwoBudgetsThatAskEachOtherDoNotDeadlock) {
    Budget process("process", {.hard = 200});
    Budget one(process, "one", {.hard = 100});
    Budget two(process, "two", {.hard = 100});
    for (int round = 0; round != 200; ++round) {
        ChargeHolder of_one(one, 100);
        ChargeHolder of_two(two, 100);
        of_one.before_giving = [&] { EXPECT_FALSE(two.would_fit(101)); };
        of_two.before_giving = [&] { EXPECT_FALSE(one.would_fit(101)); };
        std::thread other([&] { const testing::Charged charged(one, 50); });
        const testing::Charged charged(two, 50);
        other.join();
    }
    EXPECT_EQ(process.in_use(), 0U);
}

TEST(BudgetHolders, EndOfARegistrationWaitsForThoseThatAsk) {
    Budget budget("cache", {.hard = 100});
    std::optional<ChargeHolder> holder(std::in_place, budget, 100);
    std::atomic<bool> is_inside = false;
    std::atomic<bool> may_leave = false;
    holder->before_giving = [&] {
        is_inside = true;
        testing::wait_until("the holder may leave", may_leave);
    };
    std::thread asker([&] { const testing::Charged charged(budget, 50); });
    testing::wait_until("the holder is asked", is_inside);
    std::atomic<bool> is_gone = false;
    std::thread remover([&] {
        holder.reset();
        is_gone = true;
    });
    EXPECT_FALSE(is_gone);
    may_leave = true;
    asker.join();
    remover.join();
    EXPECT_TRUE(is_gone);
}

TEST(BudgetHolders, RegistrationMayOutliveTheBudget) {
    class Empty : public MemoryHolder {
        std::size_t available() const noexcept override { return 0; }
        std::size_t give(std::size_t) noexcept override { return 0; }
    } holder;
    Budget process("process", {.hard = 10});
    std::optional<Budget> part(std::in_place, process, "part");
    const HolderRegistration registration = part->add_holder(holder);
    part.reset();
    EXPECT_THROW(testing::Charged(process, 11), AllocationError);
}

TEST(BudgetHolders, ALowerLimitAsksForTheDifference) {
    Budget budget("cache", {.hard = 100});
    ChargeHolder holder(budget, 80);
    budget.set_limits({.hard = 50});
    EXPECT_EQ(holder.asked, 1);
    EXPECT_EQ(holder.last_asked, 30U);
    EXPECT_EQ(budget.in_use(), 0U);
}

TEST(BudgetHolders, AreAskedForAllThatALoweredLimitMisses) {
    class Unwilling : public MemoryHolder {
    public:
        std::size_t available() const noexcept override { return 1000; }
        std::size_t give(std::size_t bytes) noexcept override {
            asked = bytes;
            return 0;
        }
        std::size_t asked = 0;
    } holder;
    Budget budget("cache", {.hard = 100});
    const testing::Charged charged(budget, 90);
    const HolderRegistration registration = budget.add_holder(holder);
    budget.set_limits({.hard = 50});
    EXPECT_EQ(holder.asked, 40U);
    EXPECT_THROW(testing::Charged(budget, 5), AllocationError);
    EXPECT_EQ(holder.asked, 45U);
}

TEST(BudgetHolders, ReclaimAsksForWhatTheCallerWants) {
    Budget budget("cache");
    ChargeHolder one(budget, 30);
    ChargeHolder two(budget, 30, {.priority = 1});
    EXPECT_EQ(budget.reclaim(20), 30U);
    EXPECT_EQ(two.asked, 0);
    EXPECT_EQ(budget.reclaim(1000), 30U);
}

}  // namespace
}  // namespace tensorpool
