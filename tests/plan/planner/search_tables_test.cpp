#include <gtest/gtest.h>
#include "plan/planner/exact_search.hpp"

namespace {

using namespace tensorpool::planner;

std::vector<std::uint32_t> list(const NumberLists& lists, std::uint32_t number) {
    const auto view = lists[number];
    return {view.begin(), view.end()};
}

using List = std::vector<std::uint32_t>;

TEST(SearchTables, ListNeighboursAndMembers) {
    const Problem problem{.buffers = {{0, 1, 5, 1, 1}, {0, 2, 7, 1, 1}, {1, 2, 9, 1, 1}},
                          .slices = 2};
    const SearchTables tables = make_search_tables(problem);
    ASSERT_TRUE(tables.made);
    EXPECT_EQ(list(tables.neighbours, 0), List{1});
    EXPECT_EQ(list(tables.neighbours, 1), (List{0, 2}));
    EXPECT_EQ(list(tables.neighbours, 2), List{1});
    EXPECT_EQ(list(tables.members, 0), (List{0, 1}));
    EXPECT_EQ(list(tables.members, 1), (List{1, 2}));
    EXPECT_EQ(tables.slice_bytes, (std::vector<std::uint64_t>{12, 16}));
}

TEST(SearchTables, EmptyProblemHasEmptyLists) {
    const SearchTables tables = make_search_tables({});
    EXPECT_TRUE(tables.made);
    EXPECT_TRUE(tables.slice_bytes.empty());
}

TEST(SearchTables, AreNotMadeForTooManyBuffers) {
    Problem problem{.buffers = {}, .slices = 1};
    problem.buffers.assign(SearchTables::max_buffers + 1, {0, 1, 1, 1, 1});
    EXPECT_FALSE(make_search_tables(problem).made);
}

TEST(SearchTables, AreNotMadeForTooManyNeighbours) {
    Problem problem{.buffers = {}, .slices = 1};
    problem.buffers.assign(SearchTables::max_buffers, {0, 1, 1, 1, 1});
    EXPECT_FALSE(make_search_tables(problem).made);
}

}  // namespace
