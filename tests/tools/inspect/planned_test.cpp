#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::testing::MadeRecording;

Planned plan_of(MadeRecording& made) {
    return inspect::plan_of(History(made.recording()));
}

/// Blocks of which two are alive at a time.
MadeRecording chain(std::uint64_t blocks) {
    MadeRecording made;
    for (std::uint64_t i = 0; i < blocks; ++i) {
        made.allocate(0x1000 * (i + 1), 640);
        if (i > 0) made.deallocate(0x1000 * i, 1024);
    }
    return made;
}

TEST(Planned, ReachesTheLowerBoundIfPossible) {
    MadeRecording made = chain(10);
    const Planned planned = plan_of(made);
    EXPECT_TRUE(planned.made);
    EXPECT_TRUE(planned.searched);
    EXPECT_TRUE(planned.optimal);
    EXPECT_EQ(planned.peak_bytes, 1280u);
    EXPECT_EQ(planned.lower_bound_bytes, 1280u);
}

TEST(Planned, EndsOfACallComeBeforeItsBeginnings) {
    MadeRecording made;
    made.allocate(0x1000, 640);
    made.call(TraceAction::resize, 0x1000, 1280);
    EXPECT_EQ(plan_of(made).peak_bytes, 1280u);
}

TEST(Planned, UsesGreedyOrdersOnlyForManyBlocks) {
    MadeRecording made = chain(20'001);
    const Planned planned = plan_of(made);
    EXPECT_FALSE(planned.searched);
    EXPECT_EQ(planned.peak_bytes, 1280u);
}

TEST(Planned, IsNotMadeForHugeSizes) {
    MadeRecording made;
    made.allocate(0x1000, UINT64_MAX);
    made.allocate(0x2000, UINT64_MAX);
    EXPECT_FALSE(plan_of(made).made);
    const Analysis analysis = analyse(made.recording(), 1);
    EXPECT_TRUE(nlohmann::json::parse(json_report(analysis))["plan"].is_null());
    EXPECT_EQ(text_report(analysis, "a", Sizes::iec, 1).find("plan needs"), std::string::npos);
}

TEST(Planned, IsShownInAllReports) {
    MadeRecording made = chain(10);
    const Analysis analysis = analyse(made.recording(), 10);
    const std::string text = text_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_NE(text.find("plan needs            1.25 KiB  the optimum, if all blocks were known "
                        "in advance\n"),
              std::string::npos)
        << text;
    const auto json = nlohmann::json::parse(json_report(analysis));
    EXPECT_EQ(json["plan"]["peak_bytes"], 1280);
    EXPECT_EQ(json["plan"]["lower_bound_bytes"], json["peak"]["alive_bytes"]);
    EXPECT_NE(html_report(analysis, "a.trace", Sizes::iec, 10).find("[\"plan needs\","),
              std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::inspect
