#include "models/model_contents.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorpool::files {
namespace {

TEST(Utf8, AcceptsCharactersOfAllLengths) {
    for (const char* const text :
         {"", "a", "plain text of many bytes", "é", "€", "😀", "aé€😀z", "\xc2\x80", "\xdf\xbf",
          "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
        EXPECT_TRUE(is_utf8(text)) << text;
    }
    EXPECT_TRUE(is_utf8(std::string_view("a\0b", 3)));
}

TEST(Utf8, EverythingElseIsRejected) {
    for (const char* const text :
         {"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xc2z", "\xe0\x9f\xbf", "\xe2\x82",
          "\xe2\x82z", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x9f\x98", "\xf4\x90\x80\x80",
          "\xf5\x80\x80\x80", "\xff", "eight bytes and more, then \xff"}) {
        EXPECT_FALSE(is_utf8(text)) << in_quotes(text);
    }
}

TEST(Utf8, EachByteOfALongTextIsChecked) {
    for (std::size_t length = 1; length < 40; ++length) {
        for (std::size_t at = 0; at < length; ++at) {
            std::string text(length, 'a');
            text[at] = '\x80';
            EXPECT_FALSE(is_utf8(text)) << length << ' ' << at;
        }
    }
}

TEST(InQuotes, ControlCharactersAreEscaped) {
    EXPECT_EQ(in_quotes("blk.0"), "'blk.0'");
    EXPECT_EQ(in_quotes("é"), "'é'");
    EXPECT_EQ(in_quotes("\x1b[2J\n\x7f\xff"), "'\\x1b[2J\\x0a\\x7f\\xff'");
    EXPECT_EQ(in_quotes("\xe2\x82"), "'\\xe2\\x82'");
    // U+009B begins escape sequences like ESC [; U+00A0 is a space.
    EXPECT_EQ(in_quotes("\xc2\x9b\x32J\xc2\xa0"), "'\\xc2\\x9b2J\xc2\xa0'");
}

TEST(InQuotes, LongTextsAreCutBetweenCharacters) {
    EXPECT_EQ(in_quotes(std::string(79, 'a')), "'" + std::string(79, 'a') + "'");
    EXPECT_EQ(in_quotes(std::string(1000, 'a')), "'" + std::string(79, 'a') + "…'");
    std::string euros;
    for (int i = 0; i < 100; ++i) euros += "€";
    EXPECT_TRUE(is_utf8(in_quotes(euros)));
    EXPECT_LT(in_quotes(euros).size(), 90U);
}

}  // namespace
}  // namespace tensorpool::files
