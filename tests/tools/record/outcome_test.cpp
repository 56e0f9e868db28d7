#include "record/outcome.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tensorpool::command::record {
namespace {

Outcome some_outcome() {
    Outcome outcome;
    outcome.process = 4711;
    outcome.path = "a.tpt";
    outcome.has_begun = true;
    outcome.begun_after = 0.012;
    outcome.seconds = 10.04;
    outcome.entries = 1'230'000;
    outcome.bytes = 2048;
    return outcome;
}

TEST(Outcome, SummarizesTheRecording) {
    EXPECT_EQ(to_text(some_outcome(), Sizes::iec),
              "1.23M entries in 10.0 s, beginning 12 ms after the request; 2.00 KiB in a.tpt");
    EXPECT_EQ(exit_code_of(some_outcome()), success);
    EXPECT_EQ(complaint_of(some_outcome()), "");
}

TEST(Outcome, ReportsMissingEntries) {
    Outcome outcome = some_outcome();
    outcome.process_ended = true;
    outcome.dropped = 5;
    outcome.threads_left_out = 6;
    outcome.names_left_out = 7;
    const std::string text = to_text(outcome, Sizes::bytes);
    EXPECT_NE(text.find("2048 in a.tpt; process 4711 has ended\n"), std::string::npos) << text;
    EXPECT_NE(text.find("\n5 calls are missing"), std::string::npos) << text;
    EXPECT_NE(text.find("\n6 times a thread found none of the 512 rings"), std::string::npos)
        << text;
    EXPECT_NE(text.find("\n7 pools, arenas and scopes"), std::string::npos) << text;
    EXPECT_EQ(exit_code_of(outcome), success);
}

TEST(Outcome, ReportsAFullDisk) {
    Outcome outcome = some_outcome();
    outcome.problem = "No space left on device";
    EXPECT_EQ(exit_code_of(outcome), finding);
    EXPECT_NE(
        complaint_of(outcome).find("a.tpt cannot be written further: No space left on device"),
        std::string::npos);
}

TEST(Outcome, ReportsAnEmptyRecording) {
    Outcome outcome;
    outcome.process = 4711;
    EXPECT_EQ(exit_code_of(outcome), finding);
    EXPECT_NE(complaint_of(outcome).find("4711 has not begun to record"), std::string::npos);
    outcome.process_ended = true;
    EXPECT_EQ(exit_code_of(outcome), target_gone);
    EXPECT_NE(complaint_of(outcome).find("4711 ended before it noticed"), std::string::npos);
}

TEST(Outcome, IsWrittenAsJson) {
    Outcome outcome = some_outcome();
    outcome.path = "\xff.tpt";  // not valid in any character set
    const auto json = nlohmann::json::parse(to_json(outcome));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["entries"], 1'230'000);
    EXPECT_EQ(json["problem"], "");
    EXPECT_EQ(json["begun"], true);
}

}  // namespace
}  // namespace tensorpool::command::record
