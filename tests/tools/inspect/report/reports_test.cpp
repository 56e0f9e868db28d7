#include "inspect/report/reports.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "inspect/report/report_assets.hpp"
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
    const std::string html = html_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_NE(html.find("<span class=\"name\">held</span> <output>6.00 MiB</output>"),
              std::string::npos);
    EXPECT_NE(html.find("class=\"line l4\""), std::string::npos);
}

TEST(Reports, OmitHeldMemoryIfNotRecorded) {
    const Analysis analysis = analysis_with("weights");
    const std::string text = text_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_EQ(text.find("held then"), std::string::npos) << text;
    EXPECT_EQ(text.find("HELD"), std::string::npos) << text;
    EXPECT_EQ(json_report(analysis).find("held"), std::string::npos);
    const std::string html = html_report(analysis, "a.trace", Sizes::iec, 10);
    EXPECT_EQ(html.find("class=\"line l4\""), std::string::npos);
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

TEST(HtmlReport, EscapesNames) {
    const std::string html = html_report(analysis_with(hostile), "/a/" + hostile, Sizes::iec, 10);
    EXPECT_EQ(html.find("<img"), std::string::npos);
    EXPECT_NE(html.find("&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;"), std::string::npos);
    EXPECT_EQ(html.find('\x1b'), std::string::npos);
    EXPECT_EQ(html.find('\xff'), std::string::npos);
    // There are two script elements: the data and the script.
    const std::regex ends("</script>");
    EXPECT_EQ(std::distance(std::sregex_iterator(html.begin(), html.end(), ends), {}), 2);
}

TEST(HtmlReport, RefersToNoOtherResource) {
    const std::string html = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    EXPECT_NE(html.find("default-src 'none'; style-src 'sha256-"), std::string::npos);
    EXPECT_FALSE(std::regex_search(html, std::regex(" (src|href)=\"[^#]")));
    EXPECT_EQ(html.find("@import"), std::string::npos);
    EXPECT_EQ(html.find("url("), std::string::npos);
    EXPECT_EQ(html.find(" style="), std::string::npos) << "the policy forbids it";
    EXPECT_EQ(html.find(" onclick="), std::string::npos);
}

TEST(HtmlReport, ContainsItsDataAsJson) {
    const std::string html = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    const std::string begin = "type=\"application/json\">";
    const std::size_t from = html.find(begin) + begin.size();
    const auto json = nlohmann::json::parse(html.substr(from, html.find('<', from) - from));
    EXPECT_EQ(json["times"].size(), 429U);
    EXPECT_EQ(json["charts"].size(), 3U);
    EXPECT_EQ(json["charts"][0]["series"][0].size(), 429U);
}

TEST(ReportAssets, AreIncludedUnchanged) {
    const std::string html = html_report(analysis_with("weights"), "a.trace", Sizes::iec, 10);
    EXPECT_NE(html.find("<style>" + std::string(report_style().text) + "</style>"),
              std::string::npos);
    EXPECT_NE(html.find("<script>" + std::string(report_script().text) + "</script>"),
              std::string::npos);
    EXPECT_EQ(report_style().sha256.size(), 64U);
}

}  // namespace
}  // namespace tensorpool::command::inspect
