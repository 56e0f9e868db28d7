#include "stat/stat_line.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tools/tensorpool/made_up_data.hpp"

namespace tensorpool::command {
namespace {

TEST(StatLine, ShowsRatesBetweenTwoSamples) {
    const StatSample sample = compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000));
    EXPECT_EQ(sample.seconds, 2);
    EXPECT_EQ(sample.rates.allocations, 2500);
    EXPECT_EQ(stat_line(sample, Sizes::iec),
              "  116 MiB   230 MiB   221 MiB  50.4%   100%     2500        0        0        0");
}

TEST(StatLine, AlignsWithItsTitlesWithin80Columns) {
    const StatSample sample = compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000));
    for (const Sizes sizes : {Sizes::iec, Sizes::bytes}) {
        EXPECT_EQ(stat_titles(sizes).size(), stat_line(sample, sizes).size());
    }
    EXPECT_LE(stat_titles(Sizes::iec).size(), 80u);
}

TEST(StatLine, TheFirstIsTheAverageSinceTheStart) {
    const StatSample sample = since_start(made_up_snapshot(), 10);
    EXPECT_EQ(sample.rates.allocations, 200);
    EXPECT_EQ(sample.rates.hit_ratio, 0.99);
}

TEST(StatLine, HasNoRatesWithoutAStartTime) {
    const std::string line = stat_line(since_start(made_up_snapshot(), 0), Sizes::iec);
    EXPECT_NE(line.find("      -        -        -        -"), std::string::npos) << line;
}

TEST(StatLine, JsonHasAllMetrics) {
    const auto json = nlohmann::json::parse(
        stat_json(compare(made_up_snapshot(), later(made_up_snapshot(), 2, 5000))));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["allocations_rate"], 2500);
    EXPECT_EQ(json["capacity_bytes"], 230u << 20);
    EXPECT_EQ(json["device_in_use_bytes"], 300u << 20);
    EXPECT_EQ(json["device_capacity_bytes"], 640u << 20);
}

TEST(StatDevices, ShowsPyTorchsNamesBesideOursWithin80Columns) {
    const std::string text = stat_devices(made_up_snapshot(), Sizes::iec, true);
    EXPECT_TRUE(text.starts_with("activations on cuda:0\nNAME ")) << text;
    EXPECT_NE(text.find("\ncapacity_bytes           reserved_bytes.all.current          640 MiB\n"),
              std::string::npos)
        << text;
    EXPECT_NE(
        text.find("\nstream 2 holds 64 MiB, of which 40 MiB are in use;\n  20 MiB that were freed"),
        std::string::npos)
        << text;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
    EXPECT_TRUE(stat_devices(made_up_snapshot(), Sizes::iec, false).starts_with("\nactivations"));
    EXPECT_EQ(stat_devices({}, Sizes::iec, true), "no allocator of device memory now");
}

TEST(StatDevices, JsonHasAllMetricsOfEach) {
    const auto json =
        nlohmann::json::parse(stat_records_json(made_up_snapshot(), {"devices", "device_streams"}));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["devices"][0]["name"], "activations");
    EXPECT_EQ(json["devices"][0]["split_bytes"], 40u << 20);
    EXPECT_EQ(json["device_streams"][0]["waiting_bytes"], 20u << 20);
    EXPECT_TRUE(nlohmann::json::parse(stat_records_json({}, {"devices"}))["devices"].empty());
}

TEST(StatPlanned, ShowsThePeaksBesideTheBoundWithin80Columns) {
    const std::string text = stat_records(made_up_snapshot(), {"planned"}, Sizes::iec, true);
    EXPECT_TRUE(
        text.starts_with("NAME         STATE       BOUND     POOL     PLAN ABOVE SERVED MISSED"))
        << text;
    EXPECT_NE(text.find("\nstep         serving   100 MiB  125 MiB  101 MiB  1.0%    990      5"),
              std::string::npos)
        << text;
    EXPECT_TRUE(
        stat_records(made_up_snapshot(), {"planned"}, Sizes::iec, false).starts_with("\nNAME"));
    EXPECT_EQ(stat_records({}, {"planned"}, Sizes::iec, true), "");
}

TEST(StatBudgets, ShowsTheTreeWithUseAndLimits) {
    ProcessSnapshot snapshot = made_up_snapshot();
    snapshot.stashes.clear();
    const std::string text = stat_records(snapshot, {"budgets", "stashes"}, Sizes::iec, true);
    const std::string expected =
        "BUDGET           IN USE     HARD SHARE                  SOFT     PEAK REFUSED  ASKED "
        "RECLAIMED\n"
        "process         300 MiB     none     -                  none  300 MiB       0      0 "
        "        0\n"
        "  model         100 MiB     none     -                  none  100 MiB       0      0 "
        "        0\n"
        "    request           0     none  0.0% [          ] 10.0 MiB        0       0      0 "
        "        0\n"
        "  loader        200 MiB  250 MiB 80.0% [########  ]  150 MiB  240 MiB       3      7 "
        " 50.0 MiB";
    EXPECT_EQ(text, expected);
    EXPECT_TRUE(stat_records(made_up_snapshot(), {"budgets", "stashes"}, Sizes::iec, false)
                    .starts_with("\nBUDGET"));
    EXPECT_EQ(stat_records({}, {"budgets", "stashes"}, Sizes::iec, true), "");
}

TEST(StatBudgets, ShowsWhatRestsBelowTheTree) {
    ProcessSnapshot snapshot = made_up_snapshot();
    EXPECT_NE(stat_records(snapshot, {"budgets", "stashes"}, Sizes::iec, true).find("\n\nAT REST "),
              std::string::npos);
    snapshot.budgets.clear();
    const std::string text = stat_records(snapshot, {"budgets", "stashes"}, Sizes::iec, true);
    EXPECT_TRUE(text.starts_with("AT REST        KIND     COUNT   IN MEM  RESTING    TAKES RATIO"))
        << text;
    EXPECT_NE(text.find("\nkv-cache       map         40 96.0 MiB  400 MiB  100 MiB 25.0%    120"),
              std::string::npos)
        << text;
    EXPECT_TRUE(
        stat_records(snapshot, {"budgets", "stashes"}, Sizes::iec, false).starts_with("\nAT REST"));
}

TEST(StatBudgets, JsonHasAllMetricsOfEach) {
    const auto json =
        nlohmann::json::parse(stat_records_json(made_up_snapshot(), {"budgets", "stashes"}));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["budgets"][2]["name"], "loader");
    EXPECT_EQ(json["budgets"][2]["parent"], 8);
    EXPECT_EQ(json["budgets"][2]["hard_bytes"], 250u << 20);
    EXPECT_EQ(json["stashes"][0]["misses"], 120);
    EXPECT_TRUE(
        nlohmann::json::parse(stat_records_json({}, {"budgets", "stashes"}))["budgets"].empty());
    EXPECT_TRUE(
        nlohmann::json::parse(stat_records_json({}, {"budgets", "stashes"}))["stashes"].empty());
}

TEST(StatPlanned, JsonHasAllMetricsOfEach) {
    const auto json = nlohmann::json::parse(stat_records_json(made_up_snapshot(), {"planned"}));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["planned"][0]["state"], "serving");
    EXPECT_EQ(json["planned"][0]["lower_bound_bytes"], 100u << 20);
    EXPECT_TRUE(nlohmann::json::parse(stat_records_json({}, {"planned"}))["planned"].empty());
}

}  // namespace
}  // namespace tensorpool::command
