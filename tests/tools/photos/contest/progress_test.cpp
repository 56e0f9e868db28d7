#include "contest/progress.hpp"

#include <gtest/gtest.h>

namespace tensorpool::photos {
namespace {

TEST(Progress, TextIsCutBetweenCharacters) {
    EXPECT_EQ(cut_to_columns("abc", 3), "abc");
    EXPECT_EQ(cut_to_columns("abcd", 3), "abc");
    EXPECT_EQ(cut_to_columns("aüü", 2), "aü");
    EXPECT_EQ(cut_to_columns("", 3), "");
    EXPECT_EQ(cut_to_columns("abc", 0), "");
}

TEST(Progress, OnlyPermanentLinesArePrintedWithoutATerminal) {
    char text[256] = {};
    std::FILE* const stream = fmemopen(text, sizeof text, "w");
    {
        Progress progress(stream);
        progress.pass("passing");
        progress.stay("staying");
        progress.pass("passing");
    }
    std::fclose(stream);
    EXPECT_STREQ(text, "staying\n");
}

}  // namespace
}  // namespace tensorpool::photos
