#include <algorithm>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "base/alignment.hpp"
#include "plan/planner/instances.hpp"
#include "plan/planner/portfolio.hpp"

namespace {

using tensorpool::PlanMethod;
using tensorpool::planner::Buffer;
using tensorpool::planner::compress;
using tensorpool::planner::Gap;
using tensorpool::planner::order_of;
using tensorpool::planner::place;
using tensorpool::planner::Problem;
using Offsets = std::vector<std::uint64_t>;

/// A reference implementation of `place`: sorts all buffers placed before for each new one.
Offsets slowly_placed(const Problem& problem, const std::vector<std::uint32_t>& order, Gap gap) {
    Offsets offsets(problem.buffers.size());
    std::vector<std::uint32_t> done;
    for (const std::uint32_t index : order) {
        const Buffer& buffer = problem.buffers[index];
        std::vector<std::pair<std::uint64_t, std::uint64_t>> taken;
        for (const std::uint32_t other : done) {
            const Buffer& one = problem.buffers[other];
            if (one.begin >= buffer.end || buffer.begin >= one.end) continue;
            taken.emplace_back(offsets[other], offsets[other] + one.bytes);
        }
        std::sort(taken.begin(), taken.end());
        taken.emplace_back(UINT64_MAX, UINT64_MAX);
        std::uint64_t top = 0;
        std::uint64_t smallest = UINT64_MAX;
        for (const auto& [bottom, next_top] : taken) {
            const std::uint64_t at = tensorpool::base::align_up(top, buffer.alignment);
            if (at + buffer.bytes <= bottom && bottom - top < smallest &&
                (bottom != UINT64_MAX || smallest == UINT64_MAX)) {
                offsets[index] = at;
                smallest = bottom - top;
                if (gap == Gap::first) break;
            }
            top = std::max(top, next_top);
        }
        done.push_back(index);
    }
    return offsets;
}

// Short and long lifetimes, so that all levels of windows are used.
Problem mixed_problem(planner_tests::Generator& generator, std::size_t count) {
    planner_tests::Lifetimes lifetimes =
        planner_tests::random_lifetimes(generator, count, 1000, 500, 5);
    for (std::size_t i = 0; i < count; ++i) {
        if (i % 8 != 0) lifetimes[i].end = lifetimes[i].begin + 1 + static_cast<int>(i % 7) * 3;
    }
    lifetimes.push_back({0, 2000, 32, 32});
    return compress(lifetimes).at(0).problem;
}

TEST(Place, FindsTheSameGapsAsAScanOfAllBuffers) {
    planner_tests::Generator generator(51);
    for (const std::size_t count : {1U, 2U, 10U, 300U, 1500U}) {
        const Problem problem = mixed_problem(generator, count);
        const std::vector<std::uint32_t> order = order_of(problem, PlanMethod::by_area);
        for (const Gap gap : {Gap::first, Gap::best}) {
            const auto placing = place(problem, order, gap);
            EXPECT_EQ(placing.packing.offsets, slowly_placed(problem, order, gap));
            std::uint64_t peak = 0;
            for (std::size_t i = 0; i < problem.buffers.size(); ++i) {
                peak = std::max(peak, placing.packing.offsets[i] + problem.buffers[i].bytes);
            }
            EXPECT_EQ(placing.packing.peak_bytes, peak);
        }
    }
}

TEST(Place, ExaminesOnlyBuffersNearInTime) {
    planner_tests::Lifetimes chain;
    for (std::int64_t i = 0; i < 4000; ++i) chain.push_back({i, i + 2, 8});
    const Problem problem = compress(chain).at(0).problem;
    const auto placing = place(problem, order_of(problem, PlanMethod::by_time), Gap::first);
    EXPECT_EQ(placing.packing.peak_bytes, 16U);
    EXPECT_LT(placing.comparisons, 100'000U);
}

TEST(TimeWindows, ContainAllBuffersAliveWithAnother) {
    planner_tests::Generator generator(52);
    const Problem problem = mixed_problem(generator, 400);
    tensorpool::planner::TimeWindows windows(problem);
    const auto placed = [&](std::uint32_t i) {
        const Buffer& buffer = problem.buffers[i];
        return tensorpool::planner::Placed{buffer.begin, buffer.end, i, i + buffer.bytes, i};
    };
    const auto alive_with = [&](const Buffer& buffer) {
        std::vector<std::uint32_t> alive;
        windows.around(buffer).visit_alive(buffer,
                                           [&](const auto& one) { alive.push_back(one.index); });
        return alive;
    };
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) windows.add(placed(i));
    for (const Buffer& buffer : problem.buffers) {
        std::vector<std::uint32_t> expected;
        for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) {
            const Buffer& one = problem.buffers[i];
            if (one.begin < buffer.end && buffer.begin < one.end) expected.push_back(i);
        }
        EXPECT_EQ(alive_with(buffer), expected);
    }
    for (std::uint32_t i = 0; i < problem.buffers.size(); ++i) windows.remove(placed(i));
    for (const Buffer& buffer : problem.buffers) EXPECT_TRUE(alive_with(buffer).empty());
}

}  // namespace
