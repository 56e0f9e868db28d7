/// @file
/// Tests that pools and scopes charge the budgets that a file sets for their names.

#include "limits/budget_node.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>

#include <tensorpool/budget.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_scope.hpp>

#include "limits/budget_node.hpp"
#include "support/child_process.hpp"

namespace tensorpool {
namespace {

using limits::BudgetSubject;

constexpr std::size_t mib = std::size_t{1} << 20;

class NamedBudgetsTest : public ::testing::Test {
protected:
    ~NamedBudgetsTest() override { unlink(path_.c_str()); }

    std::string file(const std::string& content) const {
        std::ofstream(path_) << content;
        return path_;
    }
    /// Whether `function` returns true in a process that reads a file with this content.
    bool holds_with(const std::string& content, const std::function<bool()>& function) const {
        setenv("TENSORPOOL_BUDGETS", file(content).c_str(), 1);
        const bool holds = testing::holds_in_child([&] {
            limits::named_budgets.store(limits::NamedBudgets::unread);
            return function();
        });
        unsetenv("TENSORPOOL_BUDGETS");
        return holds;
    }

private:
    std::string path_ = ::testing::TempDir() + "budgets." + std::to_string(getpid());
};

std::size_t charged_to(BudgetSubject subject, const char* name) {
    const detail::BudgetNode* const budget = limits::find_named_budget(subject, name);
    return budget == nullptr ? SIZE_MAX : budget->in_use();
}

TEST_F(NamedBudgetsTest, PoolsOfTheNameChargeTheirCapacityWithinTheLimits) {
    EXPECT_TRUE(holds_with("process hard=3MiB\npool cache hard=2MiB\n", [] {
        MemoryPool cache({.name = "cache"});
        MemoryPool other({.name = "other"});
        void* const block = cache.try_allocate(mib);
        return block != nullptr && other.try_allocate(8 * mib) != nullptr &&
               cache.try_allocate(2 * mib) == nullptr &&
               charged_to(BudgetSubject::pool, "cache") == cache.get_total_capacity();
    }));
}

TEST_F(NamedBudgetsTest, ThePoolsOfOneNameShareTheBudgetAndTheOneInTheOptionsComesFirst) {
    EXPECT_TRUE(holds_with("pool cache hard=3MiB\n", [] {
        Budget own("own");
        MemoryPool first({.name = "cache"});
        MemoryPool second({.name = "cache"});
        MemoryPool third({.name = "cache", .budget = &own});
        return first.try_allocate(2 * mib) != nullptr && second.try_allocate(2 * mib) == nullptr &&
               third.try_allocate(8 * mib) != nullptr && own.in_use() >= 8 * mib;
    }));
}

TEST_F(NamedBudgetsTest, AScopeOfTheNameChargesWhatItsThreadAllocates) {
    EXPECT_TRUE(holds_with("scope load hard=4MiB\n", [] {
        const auto charged = [] { return charged_to(BudgetSubject::scope, "load"); };
        // It begins before the first pool.
        std::optional<StatisticsScope> load(std::in_place, "load");
        MemoryPool pool({.name = "pool"});
        void* const block = pool.allocate(3 * mib);
        void* const small = pool.allocate(100);
        bool holds = charged() > 3 * mib && pool.try_allocate(2 * mib) == nullptr;
        {
            const StatisticsScope other("other");
            holds = holds && pool.try_allocate(2 * mib) == nullptr;
        }
        load.reset();
        holds = holds && pool.try_allocate(8 * mib) != nullptr && charged() > 3 * mib;
        pool.deallocate(block);
        pool.deallocate(small, 100);
        return holds && charged() == 0;
    }));
}

TEST_F(NamedBudgetsTest, OfNestedScopesTheInnermostCharges) {
    EXPECT_TRUE(holds_with("scope a hard=1GiB\nscope b hard=1GiB\n", [] {
        const auto charged = [](const char* name) {
            return charged_to(BudgetSubject::scope, name);
        };
        MemoryPool pool({.name = "pool"});
        Budget own("own");
        const StatisticsScope a("a");
        {
            const StatisticsScope b("b");
            (void)pool.allocate(mib);
            const BudgetScope innermost(own);
            (void)pool.allocate(2 * mib);
        }
        (void)pool.allocate(4 * mib);
        return charged("a") == 4 * mib && charged("b") == mib && own.in_use() == 2 * mib;
    }));
}

TEST_F(NamedBudgetsTest, AScopeThatEndsBeforeAnInnerOneNoLongerCharges) {
    EXPECT_TRUE(holds_with("scope a hard=1GiB\nscope b hard=1GiB\n", [] {
        MemoryPool pool({.name = "pool"});
        std::optional<StatisticsScope> a(std::in_place, "a");
        std::optional<StatisticsScope> b(std::in_place, "b");
        a.reset();
        (void)pool.allocate(mib);
        b.reset();
        (void)pool.allocate(2 * mib);
        return charged_to(BudgetSubject::scope, "a") == 0 &&
               charged_to(BudgetSubject::scope, "b") == mib;
    }));
}

TEST_F(NamedBudgetsTest, AScopeChargesNothingWhileItIsPaused) {
    EXPECT_TRUE(holds_with("scope a hard=1GiB\nscope b hard=1GiB\n", [] {
        MemoryPool pool({.name = "pool"});
        std::optional<StatisticsScope> a(std::in_place, "a");
        const StatisticsScope b("b");
        a->pause();
        (void)pool.allocate(mib);
        a->resume();
        (void)pool.allocate(2 * mib);
        a->pause();
        a.reset();
        (void)pool.allocate(4 * mib);
        return charged_to(BudgetSubject::scope, "a") == 2 * mib &&
               charged_to(BudgetSubject::scope, "b") == 5 * mib;
    }));
}

TEST_F(NamedBudgetsTest, AThreadMayEndInsideAScope) {
    EXPECT_TRUE(holds_with("scope a hard=1GiB\n", [] {
        MemoryPool pool({.name = "pool"});
        std::optional<StatisticsScope> a;
        std::thread([&] {
            a.emplace("a");
            pool.deallocate(pool.allocate(100), 100);
        }).join();
        a.reset();
        (void)pool.allocate(mib);
        return charged_to(BudgetSubject::scope, "a") == 0;
    }));
}

TEST_F(NamedBudgetsTest, TheFileIsCheckedWithLineNumbers) {
    const std::string path = file("pool a hard=1GiB\npool b hard=2GB\nscope c\n");
    EXPECT_EQ(check_budget_file(path),
              (std::vector<std::string>{path + ":2: found 'hard=2GB'; expected a size above 0 such "
                                               "as 512MiB or 2GiB",
                                        path + ":3: found 'scope c'; expected hard=SIZE or "
                                               "soft=SIZE"}));
    EXPECT_TRUE(check_budget_file(file("")).empty());
    EXPECT_EQ(check_budget_file("/nowhere"),
              std::vector<std::string>{"/nowhere: cannot be read: No such file or directory"});
    EXPECT_EQ(check_budget_file("/"),
              std::vector<std::string>{"/: cannot be read: Is a directory"});
    EXPECT_EQ(check_budget_file("/dev/null"),
              std::vector<std::string>{"/dev/null: cannot be read: expected a regular file"});
    const std::string large = file(std::string(65537, '#'));
    EXPECT_EQ(check_budget_file(large),
              std::vector<std::string>{large + ": cannot be read: expected at most 65536 B"});
}

TEST_F(NamedBudgetsTest, BadLinesAreReportedOnceAndTheOthersApply) {
    EXPECT_TRUE(holds_with("pool cache hard=2GB\nscope a hard=1GiB\n", [] {
        ::testing::internal::CaptureStderr();
        MemoryPool cache({.name = "cache"});
        MemoryPool second({.name = "cache"});
        const std::string reported = ::testing::internal::GetCapturedStderr();
        return reported.starts_with("tensorpool: TENSORPOOL_BUDGETS names ") &&
               reported.ends_with(
                   ":1: found 'hard=2GB'; expected a size above 0 such as 512MiB or "
                   "2GiB; ignored\n") &&
               charged_to(BudgetSubject::pool, "cache") == SIZE_MAX &&
               charged_to(BudgetSubject::scope, "a") == 0;
    }));
}

}  // namespace
}  // namespace tensorpool
