#include "stat_line.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "made_up_data.hpp"

namespace tensorpool::command {
namespace {

TEST(StatLine, ShowsWhatHappenedBetweenTwoLooks) {
    const StatLook look = compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000));
    EXPECT_EQ(look.seconds, 2);
    EXPECT_EQ(look.rates.allocations, 2500);
    EXPECT_EQ(stat_line(look, Sizes::iec),
              "  116 MiB   230 MiB   120 MiB  50.4%   100%     2500        0        0        0");
}

TEST(StatLine, StandsUnderItsTitlesWithin80Columns) {
    const StatLook look = compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000));
    for (const Sizes sizes : {Sizes::iec, Sizes::bytes}) {
        EXPECT_EQ(stat_titles(sizes).size(), stat_line(look, sizes).size());
    }
    EXPECT_LE(stat_titles(Sizes::iec).size(), 80u);
}

TEST(StatLine, TheFirstIsTheAverageSinceTheStart) {
    const StatLook look = since_start(made_up_snapshot(), 10);
    EXPECT_EQ(look.rates.allocations, 200);
    EXPECT_EQ(look.rates.hit_ratio, 0.99);
}

TEST(StatLine, WithoutAStartThereAreNoRates) {
    const std::string line = stat_line(since_start(made_up_snapshot(), 0), Sizes::iec);
    EXPECT_NE(line.find("      -        -        -        -"), std::string::npos) << line;
}

TEST(StatLine, JsonHasAllFigures) {
    const auto json = nlohmann::json::parse(
        stat_json(compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000))));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["allocations_rate"], 2500);
    EXPECT_EQ(json["capacity_bytes"], 230u << 20);
}

}  // namespace
}  // namespace tensorpool::command
