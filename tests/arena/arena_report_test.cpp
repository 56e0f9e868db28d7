#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/arena_objects.hpp>

#include "arena/object_register.hpp"
#include "statistics/json.hpp"

namespace tensorpool {
namespace {

using testing::Json;
using testing::JsonReader;

ArenaObject object(const char* kind, const char* type, std::size_t bytes, ObjectId view_of = 0) {
    return {.id = 1,
            .description = {.name = "o", .kind = kind, .element_type = type, .bytes = bytes},
            .view_of = view_of};
}

ArenaAnalysis three_tensors() {
    return arena::analyze("mine", 4096,
                          {object("tensor", "f32", 1024), object("tensor", "f16", 1024),
                           object("graph", "", 1024), object("tensor", "f32", 512, 1)});
}

/// Percentages, which are not whole numbers, become tenths.
std::optional<Json> read(std::string json) {
    static constexpr std::string_view name = "\"percent\":";
    for (std::size_t at = json.find(name); at != std::string::npos; at = json.find(name, at)) {
        at += name.size();
        json.erase(json.find('.', at), 1);
        if (json[at] == '0') json.erase(at, 1);
    }
    return JsonReader::read(json);
}

TEST(ArenaReport, JsonContainsEveryMetric) {
    const std::optional<Json> json = read(to_json(three_tensors()));
    ASSERT_TRUE(json) << to_json(three_tensors());
    EXPECT_EQ(json->members.at("arena").text, "mine");
    EXPECT_EQ(json->members.at("used").number, 4096U);
    EXPECT_EQ(json->members.at("count").number, 3U);
    EXPECT_EQ(json->members.at("views").number, 1U);
    EXPECT_EQ(json->members.at("bytes").number, 3072U);
    const std::vector<Json>& kinds = json->members.at("by_kind").elements;
    ASSERT_EQ(kinds.size(), 2U);
    EXPECT_EQ(kinds[0].members.at("name").text, "tensor");
    EXPECT_EQ(kinds[0].members.at("count").number, 2U);
    EXPECT_EQ(kinds[0].members.at("views").number, 1U);
    EXPECT_EQ(kinds[0].members.at("bytes").number, 2048U);
    EXPECT_EQ(kinds[0].members.at("percent").number, 667U) << "tenths";
    EXPECT_EQ(kinds[1].members.at("percent").number, 333U);
    const std::vector<Json>& types = json->members.at("by_element_type").elements;
    ASSERT_EQ(types.size(), 3U);
    EXPECT_EQ(types[0].members.at("name").text, "") << "equal sizes are ordered by name";
    EXPECT_EQ(types[1].members.at("name").text, "f16");
    EXPECT_EQ(types[2].members.at("name").text, "f32");
}

TEST(ArenaReport, JsonOfAnEmptyReportIsValid) {
    for (const ArenaAnalysis& empty : {ArenaAnalysis(), arena::analyze("e", 0, {}),
                                       arena::analyze("zero", 0, {object("k", "", 0)})}) {
        const std::optional<Json> json = read(to_json(empty));
        ASSERT_TRUE(json) << to_json(empty);
        EXPECT_EQ(json->members.at("bytes").number, 0U);
    }
}

TEST(ArenaReport, JsonQuotesArbitraryNames) {
    const std::string word = "a \"kind\"\\ with\na line and \x01";
    const ArenaAnalysis analysis = arena::analyze(word, 0, {object(word.c_str(), "cut \xC3", 1)});
    const std::optional<Json> json = read(to_json(analysis));
    ASSERT_TRUE(json) << to_json(analysis);
    EXPECT_EQ(json->members.at("arena").text, word);
    EXPECT_EQ(json->members.at("by_kind").elements.at(0).members.at("name").text, word);
    EXPECT_EQ(json->members.at("by_element_type").elements.at(0).members.at("name").text,
              "cut \xEF\xBF\xBD");
}

TEST(ArenaReport, TextIsATable) {
    EXPECT_EQ(to_text(three_tensors()),
              "tensorpool: arena 'mine': 3 objects of 3 KiB and 1 views; 4 KiB in use\n"
              "  kind                  objects    views        bytes    share\n"
              "  tensor                      2        1        2 KiB   66.7 %\n"
              "  graph                       1        0        1 KiB   33.3 %\n"
              "  element type          objects    views        bytes    share\n"
              "  (none)                      1        0        1 KiB   33.3 %\n"
              "  f16                         1        0        1 KiB   33.3 %\n"
              "  f32                         1        1        1 KiB   33.3 %\n");
}

TEST(ArenaReport, TextOfAnEmptyReportIsAHeadline) {
    EXPECT_EQ(to_text(arena::analyze("mine", 64, {})),
              "tensorpool: arena 'mine': 0 objects of 0 B and 0 views; 64 B in use\n");
}

TEST(ArenaReport, TextCutsLongNames) {
    const std::string word(500, 'w');
    const std::string text = to_text(arena::analyze(word, 0, {object(word.c_str(), "", 1)}));
    EXPECT_NE(text.find("'" + std::string(47, 'w') + "'"), std::string::npos) << text;
    EXPECT_NE(text.find("  " + std::string(40, 'w') + " "), std::string::npos) << text;
    EXPECT_EQ(text.back(), '\n');
}

}  // namespace
}  // namespace tensorpool
