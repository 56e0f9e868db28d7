// Any file is either accepted with valid buffers, or rejected with an error that names the file and
// a position in it.

#include <gtest/gtest.h>

#include <random>

#include "plan/buffers.hpp"

namespace tensorpool::command::planning {
namespace {

const std::string csv =
    "id,lower,upper,size,alignment,offset\r\n"
    "0,1,20,4096,64,0\r\n"
    "\"conv, \"\"1\"\"\",-3,9,100,1,4096\n"
    "\n"
    "last, 5 ,6,4611686018427387903,4,8192\n";

const std::string json =
    R"({"peak_bytes": 8292, "x": [1.5e3, null, {"y": "é"}], "buffers": [)"
    R"({"id": "a\n", "lower": 1, "upper": 20, "size": 4096, "alignment": 64, "offset": 0},)"
    R"({"id": 7, "lower": -3, "upper": 9, "size": 100, "alignment": 1, "offset": 4096}]})";

void expect_valid(const Buffers& buffers) {
    ASSERT_EQ(buffers.ids.size(), buffers.lifetimes.size());
    if (!buffers.offsets.empty()) {
        ASSERT_EQ(buffers.offsets.size(), buffers.lifetimes.size());
    }
    for (const TensorLifetime& lifetime : buffers.lifetimes) {
        EXPECT_LT(lifetime.begin, lifetime.end);
        EXPECT_LE(lifetime.bytes, max_bytes);
        EXPECT_NE(lifetime.alignment, 0u);
        EXPECT_EQ(lifetime.alignment & (lifetime.alignment - 1), 0u);
    }
}

/// Reads a file and checks the buffers or the error. Returns whether the file was accepted.
bool accepts(const std::string& content) {
    try {
        expect_valid(read_text(content, "the file"));
        return true;
    } catch (const FileError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("the file: ")) << error.what();
        EXPECT_LT(std::string(error.what()).size(), 600u);
        return false;
    }
}

TEST(DamagedFiles, UndamagedFilesAreAccepted) {
    EXPECT_TRUE(accepts(csv));
    EXPECT_TRUE(accepts(json));
}

TEST(DamagedFiles, TruncatedFilesAreHandled) {
    for (const std::string& whole : {csv, json}) {
        for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes) accepts(whole.substr(0, bytes));
    }
}

TEST(DamagedFiles, ChangedBytesAreHandled) {
    for (const std::string& whole : {csv, json}) {
        for (std::size_t at = 0; at < whole.size(); ++at) {
            for (int byte = 0; byte < 256; ++byte) {
                std::string damaged = whole;
                damaged[at] = static_cast<char>(byte);
                accepts(damaged);
            }
        }
    }
}

TEST(DamagedFiles, MovedAndRepeatedPartsAreHandled) {
    std::mt19937 random(1);
    for (int i = 0; i < 20'000; ++i) {
        std::string damaged = i % 2 == 0 ? csv : json;
        for (int k = 0; k < 3; ++k) {
            const std::size_t from = random() % damaged.size();
            const std::string part = damaged.substr(from, random() % 20);
            if (random() % 2 == 0) damaged.erase(from, part.size());
            damaged.insert(random() % (damaged.size() + 1), part);
        }
        accepts(damaged);
    }
}

TEST(DamagedFiles, RandomNumbersAreHandled) {
    constexpr const char* numbers[] = {"0",
                                       "1",
                                       "64",
                                       "1000",
                                       "-0",
                                       "-1",
                                       "1e9",
                                       "0.5",
                                       "4611686018427387903",
                                       "4611686018427387904",
                                       "-4611686018427387904",
                                       "9223372036854775807",
                                       "-9223372036854775808",
                                       "18446744073709551616",
                                       "1e999",
                                       "NaN",
                                       "+5"};
    std::mt19937 random(2);
    const auto number = [&] { return numbers[random() % std::size(numbers)]; };
    int accepted = 0;
    for (int i = 0; i < 20'000; ++i) {
        std::string row;
        std::string object;
        for (const char* const name : {"lower", "upper", "size", "alignment", "offset"}) {
            const std::string value = number();
            row += (row.empty() ? "" : ",") + value;
            object += (object.empty() ? "{\"" : ",\"") + std::string(name) + "\":" + value;
        }
        accepted += accepts("lower,upper,size,alignment,offset\n" + row);
        accepted += accepts("[" + object + "}]");
    }
    EXPECT_GT(accepted, 0);
}

}  // namespace
}  // namespace tensorpool::command::planning
