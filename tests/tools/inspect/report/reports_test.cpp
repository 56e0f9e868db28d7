#include "inspect/analysis.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "tools/inspect/made_recording.hpp"

namespace tensorpool::command::inspect {
namespace {

using trace::testing::MadeRecording;

/// A name that tries to inject HTML and escape sequences.
const std::string hostile = "</script><img src=x onerror=alert(1)>\"'&\x1b[31m\n\xff";

MadeRecording recording_with(const std::string& name) {
    MadeRecording made;
    const auto pool = made.source(TraceSource::pool, name);
    const auto scope = made.source(TraceSource::scope, name);
    const auto module = made.module("/" + name);
    made.begin_scope(scope);
    made.allocate(0x10000, 3 << 20, pool).stack = made.stack({{module, 1}, {module, 2}});
    made.allocate(0x800000, 1000);
    made.deallocate(0x800000, 1024);
    made.recording().processes[0].name = name;
    return made;
}

/// Returns the data in a page.
nlohmann::json data_of(const std::string& html) {
    const std::string begin = "type=\"application/json\">";
    const std::size_t from = html.find(begin) + begin.size();
    return nlohmann::json::parse(html.substr(from, html.find('<', from) - from));
}

Analysis analysis_with(const std::string& name) {
    MadeRecording made = recording_with(name);
    return analyse(made.recording(), 10);
}

TEST(TextReport, ShowsTheLowerBoundAndItsSources) {
    const std::string text = text_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    EXPECT_NE(text.find("a.trace\n"), std::string::npos);
    EXPECT_NE(text.find("lower bound           3.00 MiB  maximum alive at once, in 2 blocks, "
                        "2.00 us after the first call\n"),
              std::string::npos)
        << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("weights \\(pool\\) +1 +3.00 MiB +3.00 MiB")))
        << text;
    EXPECT_NE(text.find("Alive at the end, by call site"), std::string::npos);
}

MadeRecording holding_recording() {
    MadeRecording made = recording_with("weights");
    made.hold(6 << 20);
    made.recording().capacities.back().time_ns = 1000;
    made.hold(9 << 20);
    return made;
}

TEST(Reports, ShowHeldMemory) {
    const Analysis analysis = analyse(holding_recording().recording(), 10);
    const std::string text = text_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_NE(
        text.find("held then             6.00 MiB  99.9% more than requested; at most 9.00 MiB"
                  "\n"),
        std::string::npos)
        << text;
    EXPECT_TRUE(std::regex_search(text, std::regex("TIME +BLOCKS.* LOST +HELD\n"))) << text;
    const auto json = nlohmann::json::parse(json_report(analysis));
    EXPECT_EQ(json["peak"]["held_bytes"], 6 << 20);
    EXPECT_EQ(json["peak"]["most_held_bytes"], 9 << 20);
    EXPECT_EQ(json["timeline"]["moments"].back()["held_bytes"], 6 << 20);
    const auto held = data_of(
        html_report(analysis, "a.trace", Sizes::iec, 10))["timeline"]["charts"][2]["series"][4];
    EXPECT_EQ(held["name"], "held");
    EXPECT_EQ(held["values"].back(), 6 << 20);
}

TEST(Reports, OmitHeldMemoryIfNotRecorded) {
    const Analysis analysis = analysis_with("weights");
    const std::string text = text_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_EQ(text.find("held then"), std::string::npos) << text;
    EXPECT_EQ(text.find("HELD"), std::string::npos) << text;
    EXPECT_EQ(json_report(analysis).find("held"), std::string::npos);
    const auto data = data_of(html_report(analysis, "a.trace", Sizes::iec, 10));
    EXPECT_EQ(data["timeline"]["charts"][2]["series"].size(), 4U);
}

TEST(TextReport, ShowsSizesInBytesOnRequest) {
    const std::string text = text_report(analysis_with("weights"), "a.trace", Sizes::bytes, 10);
    EXPECT_NE(text.find(" 3146728 "), std::string::npos) << text;
    EXPECT_EQ(text.find("MiB"), std::string::npos);
}

TEST(TextReport, NotesWhatMakesValuesInexact) {
    MadeRecording made = recording_with("weights");
    made.recording().processes[0].dropped = 12;
    made.recording().processes[0].from_start = false;
    made.recording().cut_bytes = 99;
    const std::string text = text_report(analyse(made.recording(), 10), "a.trace", Sizes::iec, 10);
    EXPECT_NE(text.find("12 entries were dropped"), std::string::npos);
    EXPECT_NE(text.find("its last 99 bytes"), std::string::npos);
    EXPECT_NE(text.find("Process 7 ran before it was recorded"), std::string::npos);
}

TEST(TextReport, ShowsTheLargestProcesses) {
    MadeRecording made = recording_with("weights");
    for (std::uint64_t i = 0; i < 30; ++i) {
        const auto process = made.process("helper" + std::to_string(i), 100 + i);
        const auto thread = made.thread(process, 200 + i);
        made.allocate(0x10000, 5000 + i, made.source(TraceSource::pool, "own", process)).thread =
            thread;
    }
    const std::string text = text_report(analyse(made.recording(), 3), "a.trace", Sizes::iec, 3);
    EXPECT_NE(text.find("The 3 of 31 with the most bytes alive."), std::string::npos) << text;
    EXPECT_NE(text.find("\nweights "), std::string::npos);
    EXPECT_NE(text.find("\nhelper29 "), std::string::npos);
    EXPECT_NE(text.find("\nhelper28 "), std::string::npos);
    EXPECT_EQ(text.find("\nhelper27 "), std::string::npos);
}

TEST(TextReport, EscapesControlCharacters) {
    const std::string text = text_report(analysis_with(hostile), hostile, Sizes::iec, 10);
    EXPECT_EQ(text.find('\x1b'), std::string::npos);
}

TEST(JsonReport, IsOneObjectWithUnitsInTheNames) {
    const auto json = nlohmann::json::parse(json_report(analysis_with("weights")));
    EXPECT_EQ(json["totals"]["calls"], 4);
    EXPECT_EQ(json["peak"]["alive_bytes"], (3 << 20) + 1000);
    EXPECT_EQ(json["peak"]["time_ns"], 2000);
    EXPECT_EQ(json["peak"]["by_source"][0]["name"], "weights (pool)");
    EXPECT_EQ(json["left"]["bytes"], 3 << 20);
    EXPECT_EQ(json["left"]["known"], true);
    EXPECT_EQ(json["peak"]["by_site"][0]["samples"], 1);
    EXPECT_EQ(json["sizes_by_bytes"][0]["bytes"], 3 << 20);
    // 3,000 ns are divided into stretches of whole nanoseconds.
    EXPECT_EQ(json["timeline"]["moments"].size(), 429U);
}

TEST(JsonReport, AcceptsAnyName) {
    EXPECT_TRUE(nlohmann::json::accept(json_report(analysis_with(hostile))));
}

TEST(HtmlReport, NamesCannotEndTheData) {
    const std::string evil = hostile + "@data@@nonce@@policy@";
    const std::string html = html_report(analysis_with(evil), "/a/" + evil, Sizes::iec, 10);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_EQ(html.find('\x1b'), std::string::npos);
    EXPECT_EQ(html.find('\xff'), std::string::npos);
    const std::string name = hostile.substr(0, hostile.size() - 1) + "\xEF\xBF\xBD";
    EXPECT_EQ(data_of(html)["title"], name.substr(name.rfind('/') + 1) + "@data@@nonce@@policy@");
}

TEST(HtmlReport, RunsOnlyItsOwnScript) {
    const std::string html = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    std::smatch policy;
    ASSERT_TRUE(std::regex_search(
        html, policy,
        std::regex("content=\"default-src 'none'; style-src '(nonce-[0-9a-f]{32})'; script-src "
                   "'(nonce-[0-9a-f]{32})'; base-uri 'none'; form-action 'none'\"")));
    EXPECT_EQ(policy[1], policy[2]);
    const std::string other = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    EXPECT_EQ(other.find(policy[1].str()), std::string::npos) << "it can be guessed";
}

TEST(HtmlReport, RefersToNoOtherResource) {
    const std::string html = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    EXPECT_FALSE(std::regex_search(html, std::regex(" (src|href)=\"[^#]")));
    for (const char* part : {"@import", "url(", " style=\"", " onclick=", "@files", "\nimport "}) {
        EXPECT_EQ(html.find(part), std::string::npos) << part;
    }
}

TEST(HtmlReport, ContainsItsDataAsJson) {
    const auto json = data_of(html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10));
    EXPECT_EQ(json["title"], "a.trace");
    EXPECT_EQ(json["timeline"]["t"].size(), 429U);
    ASSERT_EQ(json["timeline"]["charts"].size(), 3U);
    const auto& source = json["timeline"]["charts"][0]["series"][0];
    EXPECT_EQ(source["name"], "weights (pool)");
    EXPECT_EQ(source["values"].size(), 429U);
    EXPECT_EQ(json["facts"][0][0], "lower bound");
    for (const auto& section : json["sections"]) {
        for (const auto& row : section["rows"]) EXPECT_EQ(row.size(), section["columns"].size());
    }
}

}  // namespace
}  // namespace tensorpool::command::inspect
