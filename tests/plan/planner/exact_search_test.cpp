#include "plan/planner/exact_search.hpp"
#include <gtest/gtest.h>

#include "plan/planner/problems.hpp"

namespace {

using namespace planner_tests;
using namespace tensorpool::planner;

SearchEnd search(const Problem& problem, std::uint64_t capacity, std::uint64_t max_steps,
                 Packing& packing) {
    Work work = steps(max_steps);
    PackingSearch search(problem, capacity);
    const SearchEnd end = search.resume(work);
    if (end == SearchEnd::found) packing = search.packing();
    return end;
}

TEST(ExactSearch, PacksACutRectangle) {
    Generator generator(3);
    for (int i = 0; i < 20; ++i) {
        const Problem problem = problem_of(cut_rectangle(generator, 1024, 40, 5));
        Packing packing;
        ASSERT_EQ(search(problem, 1024, 200'000, packing), SearchEnd::found) << "instance " << i;
        EXPECT_EQ(fault_of(problem, packing, 1024), "");
        EXPECT_EQ(search(problem, 1023, 0, packing), SearchEnd::refuted);
    }
}

TEST(ExactSearch, AgreesWithBruteForceOnSmallProblems) {
    Generator generator(4);
    int refuted_above_the_bound = 0;
    for (int i = 0; i < 3000; ++i) {
        const Problem problem = problem_of(random_lifetimes(generator, 8, 7, 4, i % 2));
        const std::uint64_t bound = lower_bound(problem);
        for (std::uint64_t capacity = bound; capacity <= bound + 3; ++capacity) {
            Packing packing;
            const SearchEnd end = search(problem, capacity, 0, packing);
            const bool there_is_one = fits(problem, capacity);
            ASSERT_EQ(end, there_is_one ? SearchEnd::found : SearchEnd::refuted)
                << "instance " << i << ", capacity " << capacity;
            if (!there_is_one) {
                ++refuted_above_the_bound;
            } else {
                EXPECT_EQ(fault_of(problem, packing, capacity), "");
            }
        }
    }
    EXPECT_GT(refuted_above_the_bound, 20) << "the instances are too easy for this test";
}

TEST(ExactSearch, FindsAPackingWithinALargerCapacity) {
    Generator generator(5);
    const Problem problem = problem_of(cut_rectangle(generator, 4096, 60, 6));
    Packing packing;
    EXPECT_EQ(search(problem, 8192, 100'000, packing), SearchEnd::found);
    EXPECT_EQ(fault_of(problem, packing, 8192), "");
}

TEST(ExactSearch, StopsWithoutWritingWhenTheWorkIsOver) {
    Generator generator(6);
    const Problem problem = problem_of(cut_rectangle(generator, 4096, 60, 7));
    Packing packing{.offsets = {7}, .peak_bytes = 7};
    EXPECT_EQ(search(problem, 4096, 1, packing), SearchEnd::stopped);
    EXPECT_EQ(packing.offsets, std::vector<std::uint64_t>{7});
}

TEST(ExactSearch, ResumesWhereItWasStopped) {
    Generator generator(7);
    const Problem problem = problem_of(cut_rectangle(generator, 4096, 60, 7));
    PackingSearch in_parts(problem, 4096);
    SearchEnd end = SearchEnd::stopped;
    // Each part is longer than the last, because a run that is stopped is repeated from its start.
    for (std::uint64_t part = 1'000; end == SearchEnd::stopped && part < 10'000'000; part *= 2) {
        Work work = steps(part);
        end = in_parts.resume(work);
    }
    ASSERT_EQ(end, SearchEnd::found);
    EXPECT_EQ(fault_of(problem, in_parts.packing(), 4096), "");
}

TEST(ExactSearch, IsDeterministic) {
    Generator generator(8);
    const Problem problem = problem_of(cut_rectangle(generator, 4096, 60, 7));
    Packing first;
    Packing second;
    ASSERT_EQ(search(problem, 4096, 5'000'000, first), SearchEnd::found);
    ASSERT_EQ(search(problem, 4096, 5'000'000, second), SearchEnd::found);
    EXPECT_EQ(first.offsets, second.offsets);
}

TEST(ExactSearch, DoesNotSearchTooManyBuffers) {
    Problem problem{.buffers = {}, .slices = 1};
    problem.buffers.assign(SearchTables::max_buffers + 1, {0, 1, 1, 1, 1});
    Packing packing;
    EXPECT_EQ(search(problem, 1 << 20, 0, packing), SearchEnd::stopped);
}

TEST(ExactSearch, HandlesTheLargestSizes) {
    constexpr std::uint64_t half = std::uint64_t{1} << 61;
    const Problem problem{.buffers = {{0, 1, half, 1, 1}, {0, 1, half, 1, 1}}, .slices = 1};
    Packing packing;
    EXPECT_EQ(search(problem, 2 * half, 0, packing), SearchEnd::found);
    EXPECT_EQ(fault_of(problem, packing, 2 * half), "");
    EXPECT_EQ(search(problem, 2 * half - 1, 0, packing), SearchEnd::refuted);
}

}  // namespace
