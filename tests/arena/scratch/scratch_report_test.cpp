#include <tensorpool/scratch_report.hpp>

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

constexpr std::size_t mib = std::size_t{1} << 20;

ScratchReport sample() {
    return {{{"matmul", 12, 3 * mib, 2, 5 * mib}, {"a \"quoted\"\n name", 1, 64, 0, 0}}};
}

TEST(ScratchReport, JsonContainsEveryField) {
    const std::optional<Json> json = JsonReader::read(to_json(sample()));
    ASSERT_TRUE(json);
    const std::vector<Json>& operators = json->members.at("operators").elements;
    ASSERT_EQ(operators.size(), 2U);
    const auto& first = operators[0].members;
    EXPECT_EQ(first.size(), 5U);
    EXPECT_EQ(first.at("name").text, "matmul");
    EXPECT_EQ(first.at("calls").number, 12U);
    EXPECT_EQ(first.at("peak_bytes").number, 3 * mib);
    EXPECT_EQ(first.at("growths").number, 2U);
    EXPECT_EQ(first.at("grown_bytes").number, 5 * mib);
    EXPECT_EQ(operators[1].members.at("name").text, "a \"quoted\"\n name");
}

TEST(ScratchReport, JsonOfNoOperatorsIsAnEmptyList) {
    EXPECT_EQ(to_json(ScratchReport{}), "{\"operators\":[]}");
}

TEST(ScratchReport, TextHasALineForEachOperator) {
    EXPECT_EQ(to_text({{{"matmul", 12, 3 * mib, 2, 5 * mib}, {"softmax", 1, 64, 0, 0}}}),
              "operator                      calls         peak  growths     grown by\n"
              "matmul                           12        3 MiB        2        5 MiB\n"
              "softmax                           1         64 B        0          0 B\n");
}

TEST(ScratchReport, TextOfALongNameIsCutOff) {
    const std::string text = to_text({{{std::string(10'000, 'x'), 1, 64, 0, 0}}});
    EXPECT_NE(text.find(std::string(60, 'x') + ' '), std::string::npos);
    EXPECT_EQ(text.find(std::string(61, 'x')), std::string::npos);
    EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace tensorpool
