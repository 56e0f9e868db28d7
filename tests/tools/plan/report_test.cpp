#include "plan/buffers.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tensorpool::command::planning {
namespace {

Outcome outcome() {
    Outcome outcome;
    outcome.file = "a.csv";
    outcome.buffers = 1234;
    outcome.plan = {{}, 3 << 20, 2 << 20, false, PlanMethod::by_area};
    outcome.seconds = 0.25;
    return outcome;
}

bool holds(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
}

TEST(PlanReport, ReportsTheSizeOfThePlan) {
    const std::string text = report_text(outcome(), Sizes::iec);
    EXPECT_TRUE(text.starts_with("a.csv\nbuffers             1,234\n")) << text;
    EXPECT_TRUE(holds(text, "\nlower bound      2.00 MiB  maximum bytes alive at once\n")) << text;
    EXPECT_TRUE(holds(text, "\npeak             3.00 MiB  50% above the lower bound; a smaller "))
        << text;
    EXPECT_TRUE(holds(text, "\ntime               250 ms")) << text;
    EXPECT_FALSE(holds(text, "capacity")) << text;
    EXPECT_FALSE(text.ends_with('\n'));
    EXPECT_TRUE(holds(report_text(outcome(), Sizes::bytes), " 3145728 "));
}

TEST(PlanReport, ReportsOptimality) {
    Outcome best = outcome();
    best.plan.peak_bytes = best.plan.lower_bound_bytes;
    best.plan.optimal = true;
    EXPECT_TRUE(holds(report_text(best, Sizes::iec), "  0% above the lower bound; proven optimal"));
}

TEST(PlanReport, ASmallGapIsNotRoundedAway) {
    Outcome close = outcome();
    close.plan.peak_bytes = (2 << 20) + 1;
    EXPECT_TRUE(holds(report_text(close, Sizes::iec), "  1 B above the lower bound"));
}

TEST(PlanReport, ReportsWhetherThePlanFits) {
    Outcome limited = outcome();
    limited.capacity_bytes = 4 << 20;
    EXPECT_TRUE(fits(limited));
    EXPECT_TRUE(holds(report_text(limited, Sizes::iec), "the plan fits and leaves 1.00 MiB"));
    limited.capacity_bytes = (5 << 20) / 2;
    EXPECT_FALSE(fits(limited));
    EXPECT_TRUE(holds(report_text(limited, Sizes::iec), "does not fit: 512 KiB more are needed\n"));
    limited.capacity_bytes = 1 << 20;
    EXPECT_TRUE(holds(report_text(limited, Sizes::iec), "are needed, and no other plan fits"));
}

TEST(PlanReport, ACheckedFileHasNoMethod) {
    Outcome checked = outcome();
    checked.checked = true;
    const std::string text = report_text(checked, Sizes::iec);
    EXPECT_TRUE(holds(text, "the offsets are valid"));
    EXPECT_FALSE(holds(text, "method"));
    EXPECT_TRUE(nlohmann::json::parse(report_json(checked))["holds"]);
}

TEST(PlanReport, IsOneJsonObject) {
    Outcome limited = outcome();
    limited.file = "\xff";
    limited.capacity_bytes = 4 << 20;
    const auto json = nlohmann::json::parse(report_json(limited));
    EXPECT_EQ(json["buffers"], 1234);
    EXPECT_EQ(json["peak_bytes"], 3 << 20);
    EXPECT_EQ(json["lower_bound_bytes"], 2 << 20);
    EXPECT_EQ(json["gap"], 0.5);
    EXPECT_EQ(json["optimal"], false);
    EXPECT_EQ(json["method"], to_string(PlanMethod::by_area));
    EXPECT_EQ(json["fits"], true);
}

TEST(PlanReport, NothingToPlanHasNoGap) {
    EXPECT_EQ(gap_of({}), 0);
}

}  // namespace
}  // namespace tensorpool::command::planning
