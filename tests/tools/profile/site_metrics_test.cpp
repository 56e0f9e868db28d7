#include "formats/profile/formats.hpp"

#include <gtest/gtest.h>

#include <string>

#include "tools/profile/made_profile.hpp"

namespace tensorpool::command::profile {
namespace {

using testing::MadeProfile;

std::vector<MetricFamily> metrics_of(const HeapProfile& profile) {
    std::vector<NamedProfile> processes;
    processes.push_back(name_frames(profile, Value::live));
    return site_metrics(processes);
}

std::string site_of(const MetricSample& sample) {
    return sample.labels.back().second;
}

TEST(SiteMetrics, HaveTheProcessAndTheLine) {
    const std::vector<MetricFamily> families = metrics_of(testing::two_sites());
    ASSERT_EQ(families.size(), 2U);
    EXPECT_EQ(families[0].name, "tensorpool_site_live_bytes");
    EXPECT_EQ(families[0].kind, MetricFamily::Kind::gauge);
    ASSERT_EQ(families[0].samples.size(), 2U);
    using Labels = std::vector<std::pair<std::string, std::string>>;
    EXPECT_EQ(families[0].samples[0].labels,
              (Labels{{"pid", "4711"}, {"process", "train"}, {"site", "load at train.py:12"}}));
    EXPECT_EQ(families[0].samples[0].value, 6000);
    EXPECT_EQ(families[1].name, "tensorpool_site_allocated_bytes_total");
    EXPECT_EQ(families[1].kind, MetricFamily::Kind::counter);
    EXPECT_EQ(families[1].samples[0].value, 24000);
}

TEST(SiteMetrics, AddUpSitesWithTheSameLine) {
    MadeProfile made;
    const auto step = made.python("step", 20);
    const auto main = made.python("main", 3);
    made.site({step}, 100);
    made.site({step, main}, 50);
    const std::vector<MetricFamily> families = metrics_of(made.profile());
    ASSERT_EQ(families[0].samples.size(), 1U);
    EXPECT_EQ(families[0].samples[0].value, 150);
    EXPECT_EQ(families[1].samples[0].value, 600);
}

TEST(SiteMetrics, AreThoseOfTheLargestLines) {
    MadeProfile made;
    for (std::uint64_t line = 1; line <= 30; ++line) made.site({made.python("f", line)}, line);
    const std::vector<MetricFamily> families = metrics_of(made.profile());
    ASSERT_EQ(families[0].samples.size(), 10U);
    EXPECT_EQ(site_of(families[0].samples[0]), "f at train.py:30");
    EXPECT_EQ(site_of(families[0].samples[9]), "f at train.py:21");
    EXPECT_EQ(families[1].samples.size(), 10U);
}

TEST(SiteMetrics, LabelsAreShortAndValidText) {
    MadeProfile made;
    std::string name;
    for (int i = 0; i < 100; ++i) name += "\xc3\xbc\xff";
    made.site({made.python(name, 20)}, 100);
    const std::string site = site_of(metrics_of(made.profile())[0].samples[0]);
    EXPECT_LE(site.size(), 120U);
    EXPECT_TRUE(site.starts_with("...\xef\xbf\xbd") || site.starts_with("...\xc3\xbc")) << site;
    EXPECT_TRUE(site.ends_with("\xc3\xbc\xef\xbf\xbd at train.py:20")) << site;
}

TEST(SiteMetrics, AreAbsentWithoutSamples) {
    EXPECT_TRUE(metrics_of({}).empty());
}

}  // namespace
}  // namespace tensorpool::command::profile
