#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "plan/buffers.hpp"
#include "read_problem.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::planning {
namespace {

std::string problem_of(std::string_view json) {
    return testing::problem_of(read_json, json);
}

const std::vector<TensorLifetime> one = {{1, 2, 3, 1}};

TEST(ReadJson, ReadsAnArrayOfObjects) {
    const Buffers buffers = read_json(
        R"([{"id":"a","lower":1,"upper":2,"size":3},{"size":6,"upper":5,"lower":-4,"id":7}])", "");
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{1, 2, 3, 1}, {-4, 5, 6, 1}}));
    EXPECT_EQ(buffers.ids, (std::vector<std::string>{"a", "7"}));
    EXPECT_TRUE(read_json("[]", "").lifetimes.empty());
}

TEST(ReadJson, ReadsAnObjectWithBuffers) {
    const Buffers buffers = read_json(
        R"({"peak_bytes": 67, "method": "exact search", "x": {"buffers": [1], "size": [{}]},
            "buffers": [{"lower":1,"upper":2,"size":3,"offset":64,"alignment":32}]})",
        "");
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{1, 2, 3, 32}}));
    EXPECT_EQ(buffers.offsets, std::vector<std::uint64_t>{64});
    EXPECT_EQ(buffers.peak_bytes, 67u);
}

TEST(ReadJson, IgnoresOtherMembersOfABuffer) {
    EXPECT_EQ(
        read_json(R"([{"lower":1,"shape":[2,{"size":9}],"upper":2,"o":{"lower":7},"size":3}])", "")
            .lifetimes,
        one);
}

TEST(ReadJson, ReportsInvalidValues) {
    EXPECT_EQ(
        problem_of(R"([{"lower":1,"upper":2,"size":3},{"lower":1,"upper":2,"size":-3}])"),
        "a file: buffers[1].size: found \"-3\", expected bytes: a whole number from 0 to 2^62 "
        "- 1");
    EXPECT_EQ(problem_of(R"([{"lower":1,"upper":2.5}])"),
              "a file: buffers[0].upper: found \"2.5\", expected a time: a whole number from -2^62 "
              "to 2^62");
    EXPECT_EQ(problem_of(R"([{"lower":"1"}])"),
              "a file: buffers[0].lower: found \"1\", expected a number");
    EXPECT_EQ(problem_of(R"([{"id":null}])"),
              "a file: buffers[0].id: found \"null\", expected a number or a string");
    EXPECT_EQ(problem_of(R"([{"lower":1,"lower":1}])"),
              "a file: buffers[0].lower: found \"1\", expected it once");
    EXPECT_EQ(problem_of(R"([{"lower":1,"upper":2,"size":[3]}])"),
              "a file: buffers[0].size: found nothing, expected it for each buffer");
    EXPECT_EQ(
        problem_of(R"([{"lower":1,"upper":2,"size":3,"offset":0},{"lower":1,"upper":2,"size":3}])"),
        "a file: buffers[1].offset: found none, but the buffers before have one each; expected "
        "all or none");
    EXPECT_EQ(problem_of(R"({"peak_bytes": "many", "buffers": []})"),
              "a file: peak_bytes: found \"many\", expected bytes: a whole number from 0 to 2^62 - "
              "1");
}

TEST(ReadJson, ReportsAMissingListOfBuffers) {
    EXPECT_EQ(problem_of("[3]"),
              "a file: buffers[0]: found \"3\", expected an object for each buffer");
    EXPECT_EQ(problem_of("[[]]"),
              "a file: buffers[0]: found \"an array\", expected an object for each buffer");
    const std::string none =
        "a file: the whole file: found no array of buffers, expected one, or an object that has "
        "one "
        "as \"buffers\"";
    EXPECT_EQ(problem_of("{}"), none);
    EXPECT_EQ(problem_of("3"), none);
    EXPECT_EQ(problem_of(R"({"buffers": {"buffers": []}})"), none);
    EXPECT_EQ(problem_of(R"({"buffers": [], "buffers": []})"),
              "a file: buffers: found it twice, expected it once");
}

TEST(ReadJson, ErrorsAreShortForLongTokens) {
    EXPECT_LT(problem_of("[\"" + std::string(1'000'000, 'a')).size(), 300U);
}

TEST(ReadJson, ReportsThePositionOfSyntaxErrors) {
    EXPECT_TRUE(problem_of("[\n{\"lower\":1,}]").starts_with("a file: not JSON: line 2, column "))
        << problem_of("[\n{\"lower\":1,}]");
    EXPECT_NE(problem_of("[{}"), "");
    EXPECT_NE(problem_of(""), "");
}

TEST(ReadJson, RejectsDeepNesting) {
    EXPECT_EQ(problem_of("{\"x\":" + std::string(100'000, '[')),
              "a file: the whole file: found more than 64 levels of nesting");
}

TEST(WriteJson, RoundTrips) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.path() / "plan.json";
    Buffers buffers;
    buffers.ids = {"a\"b", "no UTF-8: \xff"};
    buffers.lifetimes = {{0, 2, 5, 1}, {1, 3, 7, 4}};
    const MemoryPlan plan = {{0, 8}, 15, 12, false, PlanMethod::by_area};
    WrittenFile file(path, "");
    write_json(buffers, plan, file);
    file.finish();
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    const Buffers again = read_json(text.str(), path);
    EXPECT_EQ(again.lifetimes, buffers.lifetimes);
    EXPECT_EQ(again.offsets, plan.offsets);
    EXPECT_EQ(again.ids[0], "a\"b");
    EXPECT_EQ(again.peak_bytes, 15u);
    const auto json = nlohmann::json::parse(text.str());
    EXPECT_EQ(json["lower_bound_bytes"], 12);
    EXPECT_EQ(json["method"], to_string(PlanMethod::by_area));
    EXPECT_EQ(json["optimal"], false);
}

}  // namespace
}  // namespace tensorpool::command::planning
