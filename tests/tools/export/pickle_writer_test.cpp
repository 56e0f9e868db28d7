#include "export/formats.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tools/export/exported.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::export_ {
namespace {

/// Returns the pickle as Python reads it, converted to JSON.
template <class Write>
nlohmann::json read_back(Write write) {
    const photos::TemporaryFolder folder;
    const std::string path = folder.file("a.pickle", testing::written([&](WrittenFile& file) {
                                             PickleWriter pickle(file);
                                             write(pickle);
                                             pickle.finish();
                                         }));
    const auto printed = testing::printed_by(
        "/usr/bin/python3 -c 'import json, pickle, sys; "
        "print(json.dumps(pickle.load(open(sys.argv[1], \"rb\"))))' '" +
        path + "' 2>&1");
    EXPECT_EQ(printed.code, 0) << printed.text;
    return nlohmann::json::parse(printed.text, nullptr, false);
}

class Pickle : public ::testing::Test {
protected:
    void SetUp() override {
        if (!std::filesystem::exists("/usr/bin/python3")) GTEST_SKIP() << "install python3";
    }
};

TEST_F(Pickle, HoldsNumbersOfAllWidths) {
    const std::vector<std::uint64_t> numbers = {0,
                                                255,
                                                256,
                                                65'535,
                                                65'536,
                                                0x7fffffff,
                                                0x80000000,
                                                0xffffffff,
                                                std::uint64_t{1} << 39,
                                                (std::uint64_t{1} << 47) - 1,
                                                std::uint64_t{1} << 47,
                                                std::uint64_t{1} << 63,
                                                UINT64_MAX};
    const auto json = read_back([&](PickleWriter& pickle) {
        pickle.begin_list();
        for (const std::uint64_t number : numbers) {
            pickle.number(number);
            pickle.end_item();
        }
        pickle.end_list();
    });
    EXPECT_EQ(json, nlohmann::json(numbers));
}

TEST_F(Pickle, HoldsTextsOfAllKinds) {
    const std::string large(70'000, 'x');
    const auto json = read_back([&](PickleWriter& pickle) {
        pickle.begin_dictionary();
        pickle.entry("", "caf\xC3\xA9");
        pickle.entry("bad", "\xff");
        pickle.entry("large", large);
        pickle.entry("again", large);
        pickle.text("pair");
        pickle.number(1);
        pickle.boolean(true);
        pickle.make_pair();
        pickle.end_dictionary();
    });
    EXPECT_EQ(json[""], "caf\xC3\xA9");
    EXPECT_EQ(json["bad"], "\xEF\xBF\xBD");
    EXPECT_EQ(json["large"], large);
    EXPECT_EQ(json["again"], large);
    EXPECT_EQ(json["pair"], nlohmann::json::parse("[1, true]"));
}

TEST_F(Pickle, HoldsLongListsAndManyTexts) {
    const auto json = read_back([](PickleWriter& pickle) {
        pickle.begin_list();
        for (std::uint64_t i = 0; i < 30'000; ++i) {
            pickle.text("text " + std::to_string(i % 1000));
            pickle.end_item();
        }
        pickle.end_list();
    });
    ASSERT_EQ(json.size(), 30'000U);
    EXPECT_EQ(json[29'999], "text 999");
    EXPECT_EQ(json[300], "text 300");
}

// The viewer's stack holds only a limited number of values.
TEST_F(Pickle, AppendsLongListsInPieces) {
    const std::string bytes = testing::written([](WrittenFile& file) {
        PickleWriter pickle(file);
        pickle.begin_list();
        for (int i = 0; i < 2500; ++i) {
            pickle.number(7);
            pickle.end_item();
        }
        pickle.end_list();
        pickle.finish();
    });
    EXPECT_EQ(std::ranges::count(bytes, 'e'), 3);
}

}  // namespace
}  // namespace tensorpool::command::export_
