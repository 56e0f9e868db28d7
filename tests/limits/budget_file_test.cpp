#include "limits/budget_file.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "limits/budget_node.hpp"

namespace tensorpool::limits {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t gib = std::size_t{1} << 30;

/// "<found>: expected <expected>", or "" for a line without a problem.
std::string problem_of(std::string_view line) {
    const auto parsed = parse_budget_line(line);
    const auto* const problem = std::get_if<BudgetProblem>(&parsed);
    if (problem == nullptr) return "";
    return std::string(problem->found) + ": expected " + problem->expected;
}

BudgetEntry entry_of(std::string_view line) {
    const auto parsed = parse_budget_line(line);
    EXPECT_EQ(problem_of(line), "");
    const auto* const entry = std::get_if<BudgetEntry>(&parsed);
    return entry == nullptr ? BudgetEntry{} : *entry;
}

TEST(BudgetFile, LinesAreParsed) {
    const BudgetEntry process = entry_of("process hard=4GiB soft=3GiB");
    EXPECT_EQ(process.subject, BudgetSubject::process);
    EXPECT_EQ(process.limits.hard, 4 * gib);
    EXPECT_EQ(process.limits.soft, 3 * gib);
    const BudgetEntry pool = entry_of("\tpool  kv cache   hard=1.5MiB # of requests\r");
    EXPECT_EQ(pool.subject, BudgetSubject::pool);
    EXPECT_EQ(pool.name, "kv cache");
    EXPECT_EQ(pool.limits.hard, mib * 3 / 2);
    EXPECT_EQ(pool.limits.soft, 0U);
    const BudgetEntry scope = entry_of("scope load#1 soft=100");
    EXPECT_EQ(scope.subject, BudgetSubject::scope);
    EXPECT_EQ(scope.name, "load#1");
    EXPECT_EQ(scope.limits.soft, 100U);
}

TEST(BudgetFile, EmptyLinesAndCommentsAreNoEntries) {
    for (const char* const line : {"", " \t\r", "# pool a hard=1", "  #"}) {
        EXPECT_EQ(parse_budget_line(line).index(), 0U) << line;
    }
}

TEST(BudgetFile, ProblemsNameWhatWasFoundAndExpected) {
    const std::string limit = "hard=SIZE or soft=SIZE";
    const std::string size = "a size above 0 such as 512MiB or 2GiB";
    EXPECT_EQ(problem_of("pol a hard=1"), "pol: expected process, pool or scope");
    EXPECT_EQ(problem_of("pool hard=1"), "pool hard=1: expected the name of a pool or scope");
    EXPECT_EQ(problem_of("process all hard=1"),
              "process all hard=1: expected no name, but " + limit);
    EXPECT_EQ(problem_of("pool a"), "pool a: expected " + limit);
    EXPECT_EQ(problem_of("pool a hrd=1"), "hrd=1: expected " + limit);
    EXPECT_EQ(problem_of("pool a hard=1 b"), "b: expected " + limit);
    for (const char* const bad : {"hard=", "hard=0", "hard=-1", "hard=2GB", "hard=nan", "hard=.",
                                  "hard=2TiB2", "soft=1048577TiB"}) {
        EXPECT_EQ(problem_of("pool a " + std::string(bad)), bad + (": expected " + size));
    }
    EXPECT_EQ(problem_of("pool a hard=1 hard=2"), "hard=2: expected each limit once");
    EXPECT_EQ(problem_of("pool a hard=1 soft=2"),
              "pool a hard=1 soft=2: expected a soft limit that does not exceed the hard one");
    const std::string longest(47, 'n');
    EXPECT_EQ(entry_of("scope " + longest + " hard=1").name.size(), 47U);
    EXPECT_NE(problem_of("scope n" + longest + " hard=1"), "");
}

std::vector<unsigned> bad_lines(BudgetTable& table, std::string_view text) {
    std::vector<unsigned> lines;
    table.add(text, [&](unsigned line, const BudgetProblem&) { lines.push_back(line); });
    return lines;
}

TEST(BudgetTable, FindsBudgetsBySubjectAndNameBelowThatOfTheProcess) {
    BudgetTable table;
    EXPECT_EQ(bad_lines(table, "pool a hard=1MiB\n\nscope a hard=2MiB\r\nprocess hard=3MiB"),
              std::vector<unsigned>());
    table.open();
    detail::BudgetNode* const pool = table.find(BudgetSubject::pool, "a");
    detail::BudgetNode* const scope = table.find(BudgetSubject::scope, "a");
    ASSERT_TRUE(pool != nullptr && scope != nullptr);
    EXPECT_EQ(pool->statistics().hard_bytes, mib);
    EXPECT_EQ(scope->statistics().hard_bytes, 2 * mib);
    EXPECT_EQ(pool->statistics().parent, scope->statistics().parent);
    EXPECT_NE(pool->statistics().parent, 0U);
    EXPECT_EQ(table.find(BudgetSubject::pool, "b"), nullptr);
    EXPECT_EQ(table.find(BudgetSubject::pool, "a pool with a name of more than 47 bytes, in full"),
              nullptr);
}

TEST(BudgetTable, WithoutAProcessBudgetsAreRoots) {
    BudgetTable table;
    EXPECT_EQ(bad_lines(table, "pool a hard=1MiB\n"), std::vector<unsigned>());
    table.open();
    EXPECT_EQ(table.find(BudgetSubject::pool, "a")->statistics().parent, 0U);
}

TEST(BudgetTable, BadLinesAreReportedAndIgnored) {
    BudgetTable table;
    EXPECT_EQ(bad_lines(table, "what\npool a hard=1\npool a hard=2\npool b\n"),
              (std::vector<unsigned>{1, 3, 4}));
    table.open();
    EXPECT_EQ(table.find(BudgetSubject::pool, "a")->statistics().hard_bytes, 1U);
    EXPECT_EQ(table.find(BudgetSubject::pool, "b"), nullptr);
    BudgetTable alone;
    EXPECT_EQ(bad_lines(alone, "\nprocess hard=1GiB"), std::vector<unsigned>{2});
    BudgetTable full;
    std::string text;
    for (int i = 0; i < 66; ++i) text += "pool " + std::to_string(i) + " hard=1\n";
    EXPECT_EQ(bad_lines(full, text), (std::vector<unsigned>{65, 66}));
}

}  // namespace
}  // namespace tensorpool::limits
