#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tools/export/exported.hpp"
#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::export_ {
namespace {

using nlohmann::json;
using trace::testing::MadeRecording;

json events_of(MadeRecording& made) {
    const History history(made.recording());
    const std::string text =
        testing::written([&](WrittenFile& file) { write_chrome_trace(history, file); });
    return json::parse(text)["traceEvents"];
}

std::vector<json> of_phase(const json& events, const std::string& phase) {
    std::vector<json> found;
    for (const json& event : events) {
        EXPECT_TRUE(event.contains("pid") && event.contains("tid")) << event;
        EXPECT_TRUE(event["ph"] == "M" || event["ts"].is_number()) << event;
        if (event["ph"] == phase) found.push_back(event);
    }
    return found;
}

TEST(ChromeTrace, CountsBytesOfEachPool) {
    MadeRecording made;
    made.allocate(0x10000, 100);
    made.allocate(0x20000, 50);
    made.deallocate(0x10000, 128);
    const auto counts = of_phase(events_of(made), "C");
    ASSERT_GE(counts.size(), 3U);
    EXPECT_EQ(counts[0]["name"], "global (pool)");
    EXPECT_EQ(counts[0]["pid"], 7);
    EXPECT_EQ(counts[0]["args"]["bytes"], 100);
    EXPECT_EQ(counts.back()["args"]["bytes"], 50);
    double last = 0;
    for (const json& count : counts) {
        EXPECT_GE(count["ts"], last);
        last = count["ts"];
    }
}

TEST(ChromeTrace, ThinsCountersButKeepsThePeak) {
    MadeRecording made;
    for (std::uint64_t i = 0; i < 150'000; ++i) {
        const std::uint64_t bytes = i == 70'000 ? 5'000'000 : 100;
        made.allocate(0x10000, bytes).time_ns = 2 * i;
        made.deallocate(0x10000, 8192).time_ns = 2 * i + 1;
    }
    const auto counts = of_phase(events_of(made), "C");
    EXPECT_LT(counts.size(), 250'000U);  // of 300,000
    EXPECT_TRUE(std::ranges::any_of(
        counts, [](const json& count) { return count["args"]["bytes"] == 5'000'000; }));
}

TEST(ChromeTrace, NestsScopes) {
    MadeRecording made;
    const auto outer = made.source(TraceSource::scope, "outer");
    const auto inner = made.source(TraceSource::scope, "<inner>\xff");
    made.begin_scope(outer);
    made.begin_scope(inner);
    made.end_scope(outer);  // ends before the scope inside it
    made.end_scope(inner);
    made.end_scope(inner);  // begun before the recording
    const json events = events_of(made);
    const auto begins = of_phase(events, "B");
    const auto ends = of_phase(events, "E");
    ASSERT_EQ(begins.size(), 2U);
    EXPECT_EQ(begins[0]["name"], "outer");
    EXPECT_EQ(begins[1]["name"], "<inner>\xEF\xBF\xBD");
    EXPECT_EQ(begins[1]["ts"], 1.0);
    ASSERT_EQ(ends.size(), 2U);
    EXPECT_EQ(ends[0]["ts"], 3.0);
    EXPECT_EQ(ends[1]["ts"], 3.0);
}

TEST(ChromeTrace, MarksFailuresAndNamesThreads) {
    MadeRecording made;
    made.call(TraceAction::refuse, 0, 99);
    const json events = events_of(made);
    const auto instants = of_phase(events, "i");
    ASSERT_EQ(instants.size(), 1U);
    EXPECT_EQ(instants[0]["args"]["bytes"], 99);
    EXPECT_EQ(instants[0]["tid"], 70);
    const auto names = of_phase(events, "M");
    ASSERT_EQ(names.size(), 2U);
    EXPECT_EQ(names[0]["args"]["name"], "program");
}

}  // namespace
}  // namespace tensorpool::command::export_
