#include "common/units.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::record {
namespace {

using namespace std::chrono_literals;

TEST(TimeText, ParsesNumbersWithUnits) {
    EXPECT_EQ(parse_time("10s"), 10s);
    EXPECT_EQ(parse_time("500ms"), 500ms);
    EXPECT_EQ(parse_time("1.5min"), 90s);
    EXPECT_EQ(parse_time("2h"), 2h);
    EXPECT_EQ(parse_time("7"), 7s);
    EXPECT_EQ(parse_time("0.25"), 250ms);
}

TEST(TimeText, RejectsOtherTexts) {
    for (const char* const text :
         {"", "s", "0", "-1s", "10 s", "10sec", "1e9", "nan", "inf", "99999999h", "0x10s"}) {
        EXPECT_FALSE(parse_time(text)) << text;
        EXPECT_NE(problem_of_time(text).find("expected a time such as 500ms"), std::string::npos);
    }
    EXPECT_EQ(problem_of_time("10s"), "");
}

}  // namespace
}  // namespace tensorpool::command::record
