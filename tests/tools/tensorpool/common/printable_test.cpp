#include "common/printable.hpp"

#include <gtest/gtest.h>

#include <clocale>

namespace tensorpool::command {
namespace {

class Printable : public ::testing::Test {
protected:
    Printable() { std::setlocale(LC_CTYPE, "C.UTF-8"); }
    ~Printable() override { std::setlocale(LC_CTYPE, "C"); }
};

TEST_F(Printable, ControlCharactersBecomeQuestionMarks) {
    EXPECT_EQ(printable("a\x1b[2Jb\x07\r\n\t\x7f"), "a?[2Jb?????");
    EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a?b");
    EXPECT_EQ(printable("\xc2\x9b"
                        "31m"),
              "?31m");  // a single character that begins an escape sequence
}

TEST_F(Printable, DirectionMarksBecomeQuestionMarks) {
    EXPECT_EQ(printable("safe\u202etxt.exe"), "safe?txt.exe");
    EXPECT_EQ(printable("a\u200bb"), "a?b");
}

TEST_F(Printable, LettersOfAllLanguagesAreKept) {
    EXPECT_EQ(printable("Grüße 重み"), "Grüße 重み");
    EXPECT_EQ(columns_of("Grüße 重み"), 10u);
}

TEST_F(Printable, InvalidBytesBecomeQuestionMarks) {
    EXPECT_EQ(printable("a\xff\xc3"), "a??");
}

TEST_F(Printable, OnlyAsciiIsKeptWithoutACharacterSet) {
    std::setlocale(LC_CTYPE, "C");
    EXPECT_EQ(printable("ü"), "??");
}

TEST_F(Printable, TextIsPaddedOrCutAtWholeCharacters) {
    EXPECT_EQ(fit("ab", 4), "ab  ");
    EXPECT_EQ(fit("ab", 4, Side::right), "  ab");
    EXPECT_EQ(fit("abcdef", 4), "abcd");
    EXPECT_EQ(fit("重み", 3), "重 ");
    EXPECT_EQ(fit("", 2), "  ");
}

}  // namespace
}  // namespace tensorpool::command
