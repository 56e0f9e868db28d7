#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>
#include <string>
#include <tensorpool/metrics.hpp>
#include <vector>

#include "made_up_snapshots.hpp"

namespace tensorpool::command {
namespace {

std::vector<std::string> lines_of_made_up_metrics() {
    std::istringstream text(to_prometheus(testing::made_up_snapshots()));
    std::vector<std::string> lines;
    for (std::string line; std::getline(text, line);) lines.push_back(line);
    return lines;
}

bool has_line(const std::string& line) {
    const std::vector<std::string> lines = lines_of_made_up_metrics();
    return std::find(lines.begin(), lines.end(), line) != lines.end();
}

TEST(MetricsText, NoLineIsRepeated) {
    std::set<std::string> seen;
    for (const std::string& line : lines_of_made_up_metrics()) {
        EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
    }
}

TEST(MetricsText, MetricsHaveTheirProcessAndPool) {
    const std::string labels = "{pid=\"101\",process=\"trainer\",pool=\"trainer\"}";
    EXPECT_TRUE(has_line("tensorpool_block_bytes" + labels + " 5242880"));
    EXPECT_TRUE(has_line("tensorpool_deallocations_total" + labels + " 900"));
    EXPECT_TRUE(has_line("tensorpool_limit_bytes" + labels + " +Inf"));
}

TEST(MetricsText, NamesFromAProcessCannotEndTheirLine) {
    EXPECT_TRUE(
        has_line("tensorpool_process_minor_faults_total{pid=\"102\","
                 "process=\"a\\\"b\\\\c\\nd{e=\\\"f\\\"} # g\"} 1234"));
}

// Prometheus rejects a whole scrape if one byte is not text.
TEST(MetricsText, ANameCutWithinACharacterBecomesValidText) {
    EXPECT_TRUE(
        has_line("tensorpool_process_minor_faults_total{pid=\"103\","
                 "process=\"B\xc3\xbcro\xef\xbf\xbd\"} 1234"));
}

TEST(MetricsText, EachMetricHasOneHelpText) {
    std::set<std::string> explained;
    for (const std::string& line : lines_of_made_up_metrics()) {
        if (line.rfind("# HELP ", 0) != 0) continue;
        EXPECT_TRUE(explained.insert(line.substr(0, line.find(' ', 7))).second) << line;
    }
    EXPECT_GT(explained.size(), 30U);
}

TEST(MetricsText, IsEmptyWithoutProcesses) {
    EXPECT_EQ(to_prometheus(std::vector<ProcessSnapshot>()), "");
}

MetricFamily family(const char* name, std::vector<MetricSample> samples) {
    return {name, "What it says.", MetricFamily::Kind::gauge, std::move(samples)};
}

std::string text_of_value(double value) {
    return to_prometheus(std::vector{family("size", {{{}, value}})});
}

TEST(MetricsText, AFamilyHasItsTypeBeforeItsSamples) {
    MetricFamily calls = family("calls_total", {{{{"pid", "7"}, {"pool", "a"}}, 3}, {{}, 4}});
    calls.kind = MetricFamily::Kind::counter;
    EXPECT_EQ(to_prometheus(std::vector{calls}),
              "# HELP calls_total What it says.\n# TYPE calls_total counter\n"
              "calls_total{pid=\"7\",pool=\"a\"} 3\ncalls_total 4\n");
}

TEST(MetricsText, LabelsCannotEndTheirLine) {
    const MetricFamily site = family("site", {{{{"site", "f\"} 1\ng\\ at a.cpp:1"}}, 5}});
    EXPECT_EQ(to_prometheus(std::vector{site}),
              "# HELP site What it says.\n# TYPE site gauge\n"
              "site{site=\"f\\\"} 1\\ng\\\\ at a.cpp:1\"} 5\n");
}

TEST(MetricsText, AHelpStaysOnOneLine) {
    MetricFamily size = family("size", {{{}, 1}});
    size.help = "one\ntwo \\ \"three\"";
    EXPECT_EQ(to_prometheus(std::vector{size}),
              "# HELP size one\\ntwo \\\\ \"three\"\n# TYPE size gauge\nsize 1\n");
}

TEST(MetricsText, NoLimitIsWrittenAsPlusInf) {
    EXPECT_NE(text_of_value(std::numeric_limits<double>::infinity()).find("\nsize +Inf\n"),
              std::string::npos);
}

TEST(MetricsText, WholeNumbersAreExactWithinTheirType) {
    EXPECT_NE(text_of_value(1099511627777).find("\nsize 1099511627777\n"), std::string::npos);
    EXPECT_NE(text_of_value(9007199254740992).find("\nsize 9007199254740992\n"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command
