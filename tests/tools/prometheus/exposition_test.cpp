#include "metrics/exposition.hpp"

#include <gtest/gtest.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <string>

namespace tensorpool::command {
namespace {

MetricFamily family(const char* name, std::vector<MetricSample> samples) {
    return {name, "What it says.", MetricFamily::Kind::gauge, std::move(samples)};
}

std::string text_of(const std::vector<MetricFamily>& families) {
    return prometheus::TextSerializer().Serialize(to_exposition(families));
}

std::string text_of_value(double value) {
    return text_of({family("size", {{{}, value}})});
}

TEST(Exposition, AFamilyHasItsTypeBeforeItsSamples) {
    MetricFamily calls = family("calls_total", {{{{"pid", "7"}, {"pool", "a"}}, 3}, {{}, 4}});
    calls.kind = MetricFamily::Kind::counter;
    EXPECT_EQ(text_of({calls}),
              "# HELP calls_total What it says.\n# TYPE calls_total counter\n"
              "calls_total{pid=\"7\",pool=\"a\"} 3\ncalls_total 4\n");
}

TEST(Exposition, SpecialCharactersInLabelsAreEscaped) {
    EXPECT_NE(text_of({family("size", {{{{"pool", "a\"b\\c\nd"}}, 1}})})
                  .find("size{pool=\"a\\\"b\\\\c\\nd\"} 1\n"),
              std::string::npos);
}

TEST(Exposition, AHelpStaysOnOneLine) {
    MetricFamily size = family("size", {{{}, 1}});
    size.help = "one\ntwo \\ \"three\"";
    EXPECT_EQ(text_of({size}), "# HELP size one\\ntwo \\\\ \"three\"\n# TYPE size gauge\nsize 1\n");
}

TEST(Exposition, NoLimitIsWrittenAsPlusInf) {
    EXPECT_NE(text_of_value(std::numeric_limits<double>::infinity()).find("\nsize +Inf\n"),
              std::string::npos);
}

TEST(Exposition, WholeNumbersAreExactWithinTheirType) {
    EXPECT_NE(text_of_value(1099511627777).find("\nsize 1099511627777\n"), std::string::npos);
    EXPECT_NE(text_of_value(9007199254740992).find("\nsize 9007199254740992\n"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command
