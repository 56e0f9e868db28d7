#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "plan/planner/instances.hpp"

namespace {

using planner_tests::Lifetimes;
using tensorpool::MemoryPlan;
using tensorpool::plan_memory;

/// Reads a CSV file with `id,lower,upper,size` on each line after the first.
Lifetimes read_instance(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    Lifetimes lifetimes;
    while (std::getline(file, line)) {
        std::istringstream fields(line);
        long long id = 0;
        tensorpool::TensorLifetime one;
        char comma = 0;
        fields >> id >> comma >> one.begin >> comma >> one.end >> comma >> one.bytes;
        lifetimes.push_back(one);
    }
    return lifetimes;
}

std::vector<std::filesystem::path> instances() {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry : std::filesystem::directory_iterator(TENSORPOOL_MINIMALLOC)) {
        if (entry.path().extension() == ".csv") paths.push_back(entry.path());
    }
    std::sort(paths.begin(), paths.end());
    return paths;
}

TEST(Minimalloc, FindsAllSixInstances) {
    EXPECT_EQ(instances().size(), 6U);
}

TEST(Minimalloc, GreedyAndSearchedPlansAreValid) {
    for (const auto& path : instances()) {
        SCOPED_TRACE(path);
        const Lifetimes lifetimes = read_instance(path);
        ASSERT_GT(lifetimes.size(), 100U);
        const MemoryPlan greedy = plan_memory(lifetimes, {.budget = std::chrono::seconds(0)});
        const MemoryPlan searched =
            plan_memory(lifetimes, {.budget = std::chrono::hours(1), .max_steps = 20'000});
        for (const MemoryPlan& plan : {greedy, searched}) {
            EXPECT_EQ(planner_tests::fault_of(lifetimes, plan), "");
            EXPECT_LE(plan.lower_bound_bytes, 1'048'576U);
            EXPECT_GE(plan.peak_bytes, plan.lower_bound_bytes);
            EXPECT_LT(plan.peak_bytes, 1'500'000U);
        }
        EXPECT_LE(searched.peak_bytes, greedy.peak_bytes);
    }
}

}  // namespace
