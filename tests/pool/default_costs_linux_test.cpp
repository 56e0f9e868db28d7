// What each thing that can be on costs a program that never looks at it, in instructions and system
// calls, which no noise of the machine touches. perf/defaults.cpp times the same works.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <string>
#include <string_view>

#include "support/default_costs.hpp"
#include "support/run_program.hpp"

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace tensorpool {
namespace {

using testing::Feature;
using testing::Variables;

struct Counts {
    unsigned long instructions = 0;
    unsigned long system_calls = 0;
};
using CountsOfWorks = std::map<std::string, Counts>;

/// Counts each work after it was done `warm` times.
CountsOfWorks count(const Feature& feature, bool is_on, int warm) {
    Variables variables = is_on ? feature.on : feature.off;
    if (is_on) variables.insert(variables.end(), feature.calm.begin(), feature.calm.end());
    // No period of retention ends meanwhile.
    variables.emplace_back("TENSORPOOL_RETAIN_MS", "1000000000");
    const auto result =
        testing::run_program(DEFAULT_COSTS_PROGRAM,
                             {feature.name, is_on ? "on" : "off", std::to_string(warm)}, variables);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::istringstream lines(result.output);
    CountsOfWorks counts;
    Counts of_work;
    std::string name;
    while (lines >> of_work.instructions >> of_work.system_calls &&
           std::getline(lines >> std::ws, name)) {
        counts[name] = of_work;
    }
    return counts;
}

/// Adds the counts of another run where they are lower: from time to time a call also looks at the
/// memory that is available, and after every 16th trip of a cache at the clock.
void lower(CountsOfWorks& counts, const CountsOfWorks& run) {
    for (const auto& [work, count] : run) {
        Counts& known = counts.try_emplace(work, count).first->second;
        known.instructions = std::min(known.instructions, count.instructions);
        known.system_calls = std::min(known.system_calls, count.system_calls);
    }
}

/// A row that misses the aim: at most how many times the instructions, and how many more system
/// calls, it takes with the feature.
struct Miss {
    const char* feature;
    const char* work;
    double instructions;
    unsigned long system_calls;
    const char* reason;
};
// Of a fork, what the handlers of the library do in the parent and in the child is counted.
constexpr Miss misses[] = {
    {"shared statistics", "forks beside idle threads", 2.3, 20,
     "the parent makes the child's segment: the child must not count in the parent's memory"},
    {"guards", "short threads", 1.04, 1, "a thread reads its time once before its first guard"},
    {"unused budget", "forks beside idle threads", 1.11, 1,
     "one more part of the segment is copied"},
    {"charged block", "forks beside idle threads", 1.17, 1, "the locks of a marked set are taken"},
    {"unused pool", "forks beside idle threads", 1.06, 0, "the locks of each pool are taken"},
};

bool is_met(const Feature& feature, const std::string& work, const Counts& on, const Counts& off) {
    Counts allowed{off.instructions + off.instructions / 50, off.system_calls};
    for (const Miss& miss : misses) {
        if (feature.name != std::string_view(miss.feature) || work != miss.work) continue;
        const auto instructions = static_cast<double>(off.instructions) * miss.instructions;
        allowed = {static_cast<unsigned long>(instructions), off.system_calls + miss.system_calls};
    }
    return on.instructions <= allowed.instructions && on.system_calls <= allowed.system_calls;
}

class DefaultCosts : public ::testing::TestWithParam<Feature> {
protected:
    void SetUp() override {
#ifndef NDEBUG
        GTEST_SKIP() << "a library without optimizations checks calls by default";
#endif
    }
};

std::string name_of(const ::testing::TestParamInfo<Feature>& info) {
    std::string name = info.param.name;
    std::replace(name.begin(), name.end(), ' ', '_');
    return name;
}

INSTANTIATE_TEST_SUITE_P(Of, DefaultCosts, ::testing::ValuesIn(testing::all_features()), name_of);

TEST_P(DefaultCosts, AreAtMostTwoPercentAndNoSystemCall) {
    CountsOfWorks off;
    CountsOfWorks on;
    bool are_met = false;
    for (int run = 0; run != 3 && !are_met; ++run) {
        lower(off, count(GetParam(), false, 1 + run));
        lower(on, count(GetParam(), true, 1 + run));
        ASSERT_EQ(off.size(), std::size(testing::all_works));
        ASSERT_EQ(on.size(), off.size());
        are_met = std::all_of(off.begin(), off.end(), [&](const auto& counted) {
            return is_met(GetParam(), counted.first, on.at(counted.first), counted.second);
        });
    }
    for (const auto& [work, without] : off) {
        const Counts& with = on.at(work);
        EXPECT_TRUE(is_met(GetParam(), work, with, without))
            << work << ": " << with.instructions << " instructions and " << with.system_calls
            << " system calls; without, " << without.instructions << " and "
            << without.system_calls;
    }
}

}  // namespace
}  // namespace tensorpool

#endif
