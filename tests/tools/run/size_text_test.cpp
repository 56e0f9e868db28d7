#include "common/units.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::run {
namespace {

TEST(SizeText, ReadsNumbersWithAndWithoutUnits) {
    EXPECT_EQ(parse_size("1"), 1U);
    EXPECT_EQ(parse_size("4096B"), 4096U);
    EXPECT_EQ(parse_size("64KiB"), 65536U);
    EXPECT_EQ(parse_size("1.5GiB"), 3ULL << 29);
    EXPECT_EQ(parse_size("2TiB"), 2ULL << 40);
}

TEST(SizeText, RejectsOtherTexts) {
    for (const char* const text : {"", "0", "0.5", "-1", "GiB", "1GB", "1 GiB", "1e3", "inf", "nan",
                                   "9999999TiB", "1GiBx", "0x10"}) {
        EXPECT_FALSE(parse_size(text)) << text;
        EXPECT_NE(problem_of_size(text).find("expected"), std::string::npos) << text;
    }
    EXPECT_EQ(problem_of_size("64KiB"), "");
}

}  // namespace
}  // namespace tensorpool::command::run
