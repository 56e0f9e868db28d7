// Runs the example unchanged: compares the memory that each way needs, and checks that the results
// are equal.

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "support/run_program.hpp"

namespace tensorpool {
namespace {

using testing::ProgramResult;
using testing::run_program;

/// Parses lines such as "pool  123 bytes" into a map keyed by their first word.
std::map<std::string, std::uint64_t> peaks_in(const std::string& output) {
    std::map<std::string, std::uint64_t> peaks;
    std::istringstream lines(output);
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string name;
        std::uint64_t bytes = 0;
        if (words >> name >> bytes) peaks[name] = bytes;
    }
    return peaks;
}

TEST(PlannedGraph, ThePlanNeedsNoMoreThanThePoolAndTheArena) {
    const ProgramResult result = run_program(TENSORPOOL_PLANNED_GRAPH, {});
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    auto peaks = peaks_in(result.output);
    ASSERT_GT(peaks["plan"], 0u) << result.output;
    EXPECT_LE(peaks["plan"], peaks["pool"]) << result.output;
    EXPECT_LE(peaks["plan"], peaks["arena"]) << result.output;
}

TEST(PlannedGraph, TheResultsAreEqual) {
    EXPECT_NE(run_program(TENSORPOOL_PLANNED_GRAPH, {}).output.find("results: equal\n"),
              std::string::npos);
}

TEST(PlannedGraph, PrintsItsUsage) {
    EXPECT_EQ(run_program(TENSORPOOL_PLANNED_GRAPH, {"--help"}).exit_code, 0);
    EXPECT_EQ(run_program(TENSORPOOL_PLANNED_GRAPH, {"--fast"}).exit_code, 2);
}

}  // namespace
}  // namespace tensorpool
