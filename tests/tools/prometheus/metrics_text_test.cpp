#include "metrics/metrics_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "made_up_snapshots.hpp"
#include "metrics/snapshot_collectable.hpp"

namespace tensorpool::command {
namespace {

std::vector<std::string> lines_of_made_up_metrics() {
    std::istringstream text(metrics_text(testing::made_up_snapshots()));
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
    EXPECT_EQ(metrics_text({}), "");
}

TEST(MetricsText, NamesOfFurtherMetricsCannotEndTheirLine) {
    const MetricFamily family = {"tensorpool_site_live_bytes",
                                 "Help.",
                                 MetricFamily::Kind::gauge,
                                 {{{{"site", "f\"} 1\ng\\ at a.cpp:1"}}, 5}}};
    EXPECT_EQ(metrics_text({}, {family}),
              "# HELP tensorpool_site_live_bytes Help.\n"
              "# TYPE tensorpool_site_live_bytes gauge\n"
              "tensorpool_site_live_bytes{site=\"f\\\"} 1\\ng\\\\ at a.cpp:1\"} 5\n");
}

TEST(SnapshotCollectable, AnEndedProcessIsAbsentFromTheNextScrape) {
    std::vector<ProcessSnapshot> running = testing::made_up_snapshots();
    const SnapshotCollectable collectable([&] { return running; });
    EXPECT_FALSE(collectable.Collect().empty());
    running.clear();
    EXPECT_TRUE(collectable.Collect().empty());
}

}  // namespace
}  // namespace tensorpool::command
