#include "platform/files/system_files_linux.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace tensorpool::platform {
namespace {

TEST(Fields, AreTakenFromTheFront) {
    std::string_view text = "a:b:c";
    EXPECT_EQ(take_field(text, ':'), "a");
    EXPECT_EQ(text, "b:c");
    EXPECT_EQ(take_field(text, ':'), "b");
    EXPECT_EQ(take_field(text, ':'), "c");
    EXPECT_EQ(take_field(text, ':'), "");
}

TEST(Fields, AdjacentSeparatorsGiveEmptyField) {
    std::string_view text = "0::/";
    take_field(text, ':');
    EXPECT_EQ(take_field(text, ':'), "");
    EXPECT_EQ(text, "/");
}

TEST(Numbers, LeadingSpacesAndTrailingTextAreIgnored) {
    EXPECT_EQ(parse_number("  42 kB"), 42U);
    EXPECT_EQ(parse_number("0"), 0U);
}

TEST(Numbers, OtherTextsGiveNullopt) {
    EXPECT_EQ(parse_number("max"), std::nullopt);
    EXPECT_EQ(parse_number(""), std::nullopt);
    EXPECT_EQ(parse_number("   "), std::nullopt);
    EXPECT_EQ(parse_number("-1"), std::nullopt);
}

TEST(Numbers, LargestSizeFitsAndLargerNumbersGiveNullopt) {
    EXPECT_EQ(parse_number("18446744073709551615"), SIZE_MAX);
    EXPECT_EQ(parse_number("18446744073709551616"), std::nullopt);
}

}  // namespace
}  // namespace tensorpool::platform
