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
              "tensorpool: planned arenas: 'step', serving\n"
              "  id                7\n"
              "  buffers           442\n"
              "  lower_bound_bytes 100 MiB\n"
              "  pool_peak_bytes   125 MiB\n"
              "  plan_peak_bytes   101 MiB\n"
              "  capacity_bytes    102 MiB\n"
              "  in_use_bytes      3 MiB\n"
              "  pool_in_use_bytes 64 B\n"
              "  iterations        12\n"
              "  served            990\n"
              "  from_pool         10\n"
              "  plans             1\n"
              "  planning_ns       12340000\n");
}

TEST(PlannedToText, ShowsMissesByReason) {
    PlannedArenaStatistics statistics = serving();
    statistics.too_large = 1;
    statistics.still_in_use = 4;
    EXPECT_NE(to_text(statistics).find("\n  too_large         1\n  still_in_use      4\n"),
              std::string::npos);
}

TEST(PlannedToText, LearningArenaShowsNoPlan) {
    EXPECT_EQ(to_text(PlannedArenaStatistics()), "tensorpool: planned arenas: '', learning\n");
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
