#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/process_snapshot.hpp>

#include "limits/budget_table.hpp"
#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

BudgetStatistics budget_of(std::uint64_t id, std::uint64_t parent) {
    return {.name = "budget", .id = id, .parent = parent};
}

using Row = std::pair<std::uint64_t, std::size_t>;  // number and depth

std::vector<Row> rows_of(const std::vector<BudgetStatistics>& budgets) {
    ProcessSnapshot snapshot;
    snapshot.budgets = budgets;
    const std::vector<RecordGroup> groups = record_groups(snapshot);
    const RecordGroup& group = *std::ranges::find(groups, "budgets", &RecordGroup::name);
    std::vector<Row> rows;
    for (const RecordRow& row : to_grid(groups, group).rows) {
        rows.emplace_back(group.records[row.record].id, row.depth);
    }
    return rows;
}

TEST(BudgetToJson, ContainsEveryMetric) {
    BudgetStatistics budget = budget_of(5, 3);
    budget.reclaimed_bytes = 77;
    const Json read = JsonReader::read(to_json(budget)).value();
    EXPECT_EQ(read.members.at("name").text, "budget");
    EXPECT_EQ(read.members.at("parent").number, 3U);
    EXPECT_EQ(read.members.at("reclaimed_bytes").number, 77U);
    for (const statistics::Field& metric : statistics::budgets::fields) {
        if (metric.use != statistics::Use::shown) continue;
        EXPECT_TRUE(read.members.contains(std::string(metric.name))) << metric.name.view();
    }
}

TEST(BudgetTree, OfNothingIsEmpty) {
    EXPECT_TRUE(rows_of({}).empty());
}

TEST(BudgetTree, ChildrenFollowTheirParentInTheOrderInWhichTheyWereMade) {
    const std::vector<BudgetStatistics> budgets = {budget_of(1, 0), budget_of(2, 0),
                                                   budget_of(3, 1), budget_of(4, 2),
                                                   budget_of(5, 3), budget_of(6, 1)};
    EXPECT_EQ(rows_of(budgets), (std::vector<Row>{{1, 0}, {3, 1}, {5, 2}, {6, 1}, {2, 0}, {4, 1}}));
}

TEST(BudgetTree, BudgetWithoutItsParentIsARoot) {
    EXPECT_EQ(rows_of({budget_of(4, 2), budget_of(5, 4)}), (std::vector<Row>{{4, 0}, {5, 1}}));
}

// As in a segment that another process overwrote.
TEST(BudgetTree, CyclesAndRepeatedNumbersLoseNothing) {
    EXPECT_EQ(rows_of({budget_of(1, 2), budget_of(2, 1)}), (std::vector<Row>{{1, 0}, {2, 1}}));
    EXPECT_EQ(rows_of({budget_of(3, 3)}), (std::vector<Row>{{3, 0}}));
    EXPECT_EQ(rows_of({budget_of(3, 0), budget_of(3, 0), budget_of(4, 3)}),
              (std::vector<Row>{{3, 0}, {4, 1}, {3, 0}}));
}

TEST(BudgetTree, MayBeDeep) {
    std::vector<BudgetStatistics> budgets;
    for (std::uint64_t id = 1; id <= 100'000; ++id) budgets.push_back(budget_of(id, id - 1));
    EXPECT_EQ(rows_of(budgets).size(), 100'000U);
    EXPECT_EQ(rows_of(budgets).back().second, 8U) << "not indented further";
}

}  // namespace
}  // namespace tensorpool
