#include "formats/holders/answer.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "common/settings.hpp"

namespace tensorpool::command::holders {
namespace {

using Json = nlohmann::json;

Json answer() {
    return {{"version", 1},
            {"objects", 123'456},
            {"pause_ns", 42'000'000},
            {"is_cut", false},
            {"largest",
             {{{"bytes", 8'000'000},
               {"type", "numpy.ndarray"},
               {"shape", {1000, 1000}},
               {"dtype", "float64"},
               {"device", "cpu"},
               {"held_by", {"__main__.history[3]", "train() at train.py:7, variable x"}},
               {"more_holders", 2}},
              {{"bytes", 16'000'000},
               {"type", "torch.Tensor"},
               {"shape", Json::array()},
               {"dtype", "float32"},
               {"device", "cuda:0"},
               {"held_by", Json::array()},
               {"more_holders", 0}}}}};
}

Answer parsed(const Json& json) {
    return parse_answer(4711, json.dump());
}

/// Returns the complaint about an answer.
std::string complaint(const std::string& text) {
    try {
        (void)parse_answer(4711, text);
    } catch (const CommandError& error) {
        return error.what();
    }
    return "none";
}

TEST(HoldersAnswer, IsShownAsATableTheLargestFirst) {
    EXPECT_EQ(to_text(parsed(answer()), 4711, 10, Sizes::iec),
              "process 4711 paused for 42 ms to look at 123,456 objects\n"
              "   bytes array                              held by\n"
              "15.3 MiB torch.Tensor () float32 on cuda:0  no Python object: C or C++ code, or the "
              "autograd graph\n"
              "7.63 MiB numpy.ndarray (1000, 1000) float64 __main__.history[3]\n"
              "                                            train() at train.py:7, variable x and 2 "
              "more");
}

TEST(HoldersAnswer, ShowsAsManyAsWanted) {
    const std::string text = to_text(parsed(answer()), 4711, 1, Sizes::bytes);
    EXPECT_NE(text.find("16000000 torch.Tensor"), std::string::npos) << text;
    EXPECT_EQ(text.find("history"), std::string::npos) << text;
    EXPECT_EQ(Json::parse(to_json(parsed(answer()), 4711, 1))["largest"].size(), 1U);
}

TEST(HoldersAnswer, ReportsASearchThatWasCut) {
    Json json = answer();
    json["is_cut"] = true;
    const std::string text = to_text(parsed(json), 4711, 10, Sizes::iec);
    EXPECT_NE(text.find("objects; the search was cut, because it took too long\n"),
              std::string::npos)
        << text;
    EXPECT_NE(text.find("unknown: the search was cut"), std::string::npos) << text;
}

TEST(HoldersAnswer, SaysThatThereAreNoArrays) {
    Json json = answer();
    json["largest"] = Json::array();
    EXPECT_TRUE(to_text(parsed(json), 4711, 10, Sizes::iec)
                    .ends_with("\nit holds no NumPy array and no PyTorch tensor"));
}

TEST(HoldersAnswer, IsOneObjectOfJson) {
    Json json = Json::parse(to_json(parsed(answer()), 4711, 10));
    EXPECT_EQ(json["process"], 4711);
    EXPECT_EQ(json["objects"], 123'456);
    EXPECT_EQ(json["pause_seconds"], 0.042);
    EXPECT_EQ(json["largest"][1], answer()["largest"][0]);
}

TEST(HoldersAnswer, SendsNoControlCharacterToTheTerminal) {
    Json json = answer();
    json["largest"][0]["type"] = "evil\033[2J";
    json["largest"][0]["held_by"][0] = "name\r\n\033]0;title\a";
    const std::string text = to_text(parsed(json), 4711, 10, Sizes::iec);
    EXPECT_NE(text.find("evil?[2J"), std::string::npos) << text;
    EXPECT_NE(text.find("name???]0;title?"), std::string::npos) << text;
}

TEST(HoldersAnswer, IsRefusedIfItIsEmpty) {
    EXPECT_EQ(complaint(""),
              "process 4711 names no holders: start it with `tensorpool run --with holders -- "
              "...`, or call tensorpool.enable_holders() in it");
}

TEST(HoldersAnswer, IsRefusedIfItIsAnError) {
    EXPECT_EQ(complaint(R"({"error": "the search failed: KeyError\u001b", "pause_ns": 1})"),
              "process 4711 could not name holders: the search failed: KeyError?");
}

TEST(HoldersAnswer, IsRefusedIfAFieldIsMissingOrOfAnotherType) {
    for (const char* const field : {"version", "objects", "pause_ns", "is_cut", "largest"}) {
        for (const Json& wrong : {Json(), Json("text"), Json(-1), Json(1.5)}) {
            Json json = answer();
            json[field] = wrong;
            EXPECT_NE(complaint(json.dump()).find("its answer is not as expected"),
                      std::string::npos)
                << json;
            json.erase(field);
            EXPECT_NE(complaint(json.dump()).find("not as expected"), std::string::npos) << json;
        }
    }
    for (const char* const field :
         {"bytes", "type", "shape", "dtype", "device", "held_by", "more_holders"}) {
        for (const Json& wrong : {Json(), Json(-1), Json::array({-1}), Json::array({Json()})}) {
            Json json = answer();
            json["largest"][1][field] = wrong;
            EXPECT_NE(complaint(json.dump()).find("its answer is not as expected"),
                      std::string::npos)
                << json;
        }
    }
}

TEST(HoldersAnswer, IsRefusedIfItIsNoJson) {
    std::string deep;
    for (unsigned i = 0; i < 100'000; ++i) deep += '[';
    const std::string whole = answer().dump();
    for (const std::string& text :
         {std::string("x"), std::string("[]"), std::string("\xff\xfe"), deep,
          whole.substr(0, whole.size() / 2), std::string(1, '\0')}) {
        EXPECT_NE(complaint(text).find("its answer is not as expected"), std::string::npos);
    }
    Json many = answer();
    for (unsigned i = 0; i < 200; ++i) many["largest"].push_back(many["largest"][0]);
    EXPECT_NE(complaint(many.dump()).find("a list of more than 100"), std::string::npos);
}

}  // namespace
}  // namespace tensorpool::command::holders
