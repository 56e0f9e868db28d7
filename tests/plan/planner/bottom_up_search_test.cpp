#include <limits>
#include "plan/planner/exact_search.hpp"

#include <gtest/gtest.h>

#include "plan/planner/problems.hpp"

namespace {

using namespace planner_tests;
using namespace tensorpool::planner;

constexpr std::uint64_t no_bound = std::numeric_limits<std::uint64_t>::max();

struct Searched {
    SearchEnd end;
    Packing packing;
    std::uint64_t nodes;
};

Searched searched(const Problem& problem, std::uint64_t capacity, SearchOrder order,
                  std::uint64_t max_nodes = no_bound) {
    const SearchTables tables = make_search_tables(problem);
    BottomUpSearch search(problem, tables, capacity);
    Work work = steps(0);
    const OrderNoise noise(problem.buffers.size());
    const SearchEnd end = search.run(order, noise, max_nodes, work);
    Packing packing{.offsets = search.offsets(), .peak_bytes = 0};
    for (std::size_t i = 0; i < packing.offsets.size(); ++i) {
        packing.peak_bytes =
            std::max(packing.peak_bytes, packing.offsets[i] + problem.buffers[i].bytes);
    }
    return {end, packing, work.steps()};
}

TEST(BottomUpSearch, EveryOrderIsExhaustive) {
    Generator generator(11);
    for (int i = 0; i < 60; ++i) {
        const Problem problem = problem_of(random_lifetimes(generator, 7, 7, 5));
        for (std::uint64_t capacity = 8; capacity <= 14; ++capacity) {
            const SearchEnd expected =
                fits(problem, capacity) ? SearchEnd::found : SearchEnd::refuted;
            for (const SearchOrder order : all_search_orders) {
                const Searched result = searched(problem, capacity, order);
                ASSERT_EQ(result.end, expected) << "instance " << i << ", capacity " << capacity;
                if (expected == SearchEnd::found) {
                    EXPECT_EQ(fault_of(problem, result.packing, capacity), "");
                }
            }
        }
    }
}

// A cut rectangle leaves no free byte, so pruning that is wrong by one byte would lose its packing.
TEST(BottomUpSearch, NeverRefutesTheCapacityOfACutRectangle) {
    Generator generator(13);
    for (int i = 0; i < 3000; ++i) {
        const Problem problem =
            problem_of(cut_rectangle(generator, 16 * (6 + i % 20), 4 + i % 12, 4 + i % 2));
        for (const SearchOrder order : all_search_orders) {
            const Searched result = searched(problem, 16 * (6 + i % 20), order, 20'000);
            ASSERT_NE(result.end, SearchEnd::refuted) << "instance " << i;
        }
    }
}

TEST(BottomUpSearch, BuffersAliveAtOnceAreStacked) {
    const Problem problem{.buffers = {{0, 1, 3, 1, 1}, {0, 2, 2, 1, 2}, {1, 2, 3, 1, 1}},
                          .slices = 2};
    const Searched result = searched(problem, 5, SearchOrder::crowd_time_area);
    ASSERT_EQ(result.end, SearchEnd::found);
    EXPECT_EQ(fault_of(problem, result.packing, 5), "");
}

TEST(BottomUpSearch, FloorsAreAligned) {
    const Problem problem{.buffers = {{0, 1, 3, 1, 1}, {0, 1, 8, 8, 1}}, .slices = 1};
    EXPECT_EQ(searched(problem, 10, SearchOrder::crowd_time_area).end, SearchEnd::refuted);
    const Searched result = searched(problem, 11, SearchOrder::crowd_time_area);
    ASSERT_EQ(result.end, SearchEnd::found);
    EXPECT_EQ(result.packing.offsets, (std::vector<std::uint64_t>{8, 0}));
}

TEST(BottomUpSearch, ASliceAboveTheCapacityIsRefutedWithoutSearch) {
    const Problem problem{.buffers = {{0, 1, 3, 1, 1}, {0, 1, 3, 1, 1}}, .slices = 1};
    const Searched result = searched(problem, 5, SearchOrder::time_area_crowd);
    EXPECT_EQ(result.end, SearchEnd::refuted);
    EXPECT_EQ(result.nodes, 0U);
}

TEST(BottomUpSearch, StopsAfterMaxNodes) {
    Generator generator(12);
    const Problem problem = problem_of(cut_rectangle(generator, 4096, 60, 7));
    const Searched result = searched(problem, 4096, SearchOrder::time_area_crowd, 10);
    EXPECT_EQ(result.end, SearchEnd::stopped);
    EXPECT_LE(result.nodes, 10U);
}

// One part cannot be packed; the other parts can be packed in many ways. The search must not try
// all combinations of these before it reports a failure.
TEST(BottomUpSearch, IndependentPartsAreSearchedSeparately) {
    Problem problem{.buffers = {}, .slices = 0};
    constexpr std::uint32_t parts = 8;
    for (std::uint32_t part = 0; part < parts; ++part) {
        for (std::uint64_t bytes = 1; bytes <= 4; ++bytes) {
            problem.buffers.push_back({part, part + 1, bytes, 1, 1});
        }
    }
    // Three buffers aligned to 8 need 23 bytes, one more than the capacity.
    for (int i = 0; i < 3; ++i)
        problem.buffers.push_back({parts, parts + 1, i < 2 ? 7U : 8U, 8, 1});
    problem.slices = parts + 1;
    const Searched result = searched(problem, 22, SearchOrder::crowd_time_area);
    EXPECT_EQ(result.end, SearchEnd::refuted);
    EXPECT_LT(result.nodes, 200U);
}

}  // namespace
