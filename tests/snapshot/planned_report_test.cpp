#include <tensorpool/planned_arena_statistics.hpp>

#include <gtest/gtest.h>

#include <cstring>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

constexpr std::uint64_t mib = std::uint64_t{1} << 20;

PlannedArenaStatistics serving() {
    PlannedArenaStatistics statistics = {
        .state = PlannedArenaStatistics::State::serving, .id = 7, .buffers = 442};
    std::strcpy(statistics.name, "step");
    statistics.lower_bound_bytes = 100 * mib;
    statistics.pool_peak_bytes = 125 * mib;
    statistics.plan_peak_bytes = 101 * mib;
    statistics.capacity_bytes = 102 * mib;
    statistics.in_use_bytes = 3 * mib;
    statistics.pool_in_use_bytes = 64;
    statistics.iterations = 12;
    statistics.served = 990;
    statistics.from_pool = 10;
    statistics.plans = 1;
    statistics.planning_ns = 12'340'000;
    return statistics;
}

TEST(PlannedToText, ShowsPeaksAndLowerBound) {
    EXPECT_EQ(to_text(serving()),
              "tensorpool: planned arena 'step', serving, 12 iterations, 442 buffers\n"
              "  peaks     lower bound 100 MiB, pool 125 MiB (+25.0 %), plan 101 MiB (+1.0 %)\n"
              "  in use    3 MiB of 102 MiB held for the plan, 64 B of the pool's blocks\n"
              "  requests  990 from the plan (99.0 %), 10 from the pool\n"
              "  plans     1, 12.3 ms spent on them\n");
}

TEST(PlannedToText, ShowsMissesByReason) {
    PlannedArenaStatistics statistics = serving();
    statistics.too_large = 1;
    statistics.out_of_order = 2;
    statistics.unknown = 3;
    statistics.still_in_use = 4;
    EXPECT_NE(to_text(statistics)
                  .find("  missed    1 too large, 2 out of order, 3 unknown, 4 still in use\n"),
              std::string::npos);
}

TEST(PlannedToText, LearningArenaShowsNoPlan) {
    PlannedArenaStatistics statistics;
    EXPECT_NE(to_text(statistics).find("'', learning, 0 iterations"), std::string::npos);
    EXPECT_NE(to_text(statistics).find("lower bound 0 B, pool -, plan -\n"), std::string::npos);
    statistics.lower_bound_bytes = 100 * mib;
    statistics.pool_peak_bytes =
        99 * mib;  // the bound of a loaded plan, and an incomplete iteration
    EXPECT_NE(to_text(statistics).find("pool 99 MiB, plan -\n"), std::string::npos);
}

TEST(PlannedToJson, ContainsFieldsByNameAndStateAsWord) {
    const auto json = testing::JsonReader::read(to_json(serving()));
    ASSERT_TRUE(json.has_value());
    EXPECT_EQ(json->members.at("name").text, "step");
    EXPECT_EQ(json->members.at("state").text, "serving");
    EXPECT_EQ(json->members.at("lower_bound_bytes").number, 100.0 * mib);
    EXPECT_EQ(json->members.at("planning_ns").number, 12'340'000);
}

TEST(PlannedState, EveryValueHasAWord) {
    EXPECT_STREQ(to_string(PlannedArenaStatistics::State::learning), "learning");
    EXPECT_STREQ(to_string(PlannedArenaStatistics::State::planning), "planning");
    EXPECT_STREQ(to_string(PlannedArenaStatistics::State{9}), "unknown");
}

}  // namespace
}  // namespace tensorpool
