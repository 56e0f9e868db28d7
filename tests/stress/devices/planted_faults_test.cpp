#include <gtest/gtest.h>

#include <string>

#include "stress/devices/run.hpp"

namespace tensorpool::stress::devices {
namespace {

constexpr std::uint64_t operations = 20'000;
constexpr std::uint64_t max_seeds = 4;

class PlantedDeviceFault : public ::testing::TestWithParam<PlantedFault> {};

// The lazy schedule, where work runs only when a caller waits, makes faults the most likely.
TEST_P(PlantedDeviceFault, IsReportedWithBothOperations) {
    Finding found;
    for (std::uint64_t seed = 1; seed <= max_seeds && found.text.empty(); ++seed) {
        found = run(seed, Schedule::lazy, operations, &GetParam());
    }
    ASSERT_NE(found.text, "");
    ASSERT_TRUE(found.hazard.has_value()) << found.text;
    for (const HazardOperation& operation : {found.hazard->operation, found.hazard->other}) {
        EXPECT_NE(operation.number, 0U) << found.text;
        EXPECT_NE(operation.label, "") << found.text;
        EXPECT_NE(operation.stream, "") << found.text;
    }
}

INSTANTIATE_TEST_SUITE_P(Each, PlantedDeviceFault,
                         ::testing::ValuesIn(planted_faults().begin(), planted_faults().end()),
                         [](const auto& one) { return std::string(one.param.name); });

TEST(PlantedDeviceFaults, AreAtLeastTwenty) {
    EXPECT_GE(planted_faults().size(), 20U);
}

}  // namespace
}  // namespace tensorpool::stress::devices
