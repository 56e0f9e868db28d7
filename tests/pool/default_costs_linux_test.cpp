// What each thing that can be on costs a program that never looks at it, in instructions and system
// calls, which no noise of the machine touches. perf/defaults.cpp times the same works.

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <sstream>
#include <string>

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

CountsOfWorks count(const Feature& feature, bool is_on) {
    Variables variables = is_on ? feature.on : feature.off;
    if (is_on) variables.insert(variables.end(), feature.calm.begin(), feature.calm.end());
    const auto result = testing::run_program(DEFAULT_COSTS_PROGRAM,
                                             {feature.name, is_on ? "on" : "off"}, variables);
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
    const CountsOfWorks off = count(GetParam(), false);
    const CountsOfWorks on = count(GetParam(), true);
    ASSERT_EQ(off.size(), std::size(testing::all_works));
    ASSERT_EQ(on.size(), off.size());
    for (const auto& [work, without] : off) {
        const Counts& with = on.at(work);
        EXPECT_LE(with.instructions, without.instructions + without.instructions / 50) << work;
        EXPECT_LE(with.system_calls, without.system_calls) << work;
    }
}

}  // namespace
}  // namespace tensorpool

#endif
