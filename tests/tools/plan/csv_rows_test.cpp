#include "plan/buffers.hpp"

#include <gtest/gtest.h>

namespace tensorpool::command::planning {
namespace {

using Texts = std::vector<std::vector<std::string>>;

Texts texts_of(std::string_view csv) {
    CsvRows rows(csv);
    Texts texts;
    for (std::vector<CsvCell> row; rows.next(row);) {
        texts.emplace_back();
        for (const CsvCell& cell : row) texts.back().push_back(cell.text);
    }
    return texts;
}

TEST(CsvRows, SplitRowsAndCells) {
    EXPECT_EQ(texts_of("a,b\n1,2\n"), (Texts{{"a", "b"}, {"1", "2"}}));
    EXPECT_EQ(texts_of("a,b\n1,"), (Texts{{"a", "b"}, {"1", ""}}));
    EXPECT_EQ(texts_of(""), Texts{});
}

TEST(CsvRows, LinesMayEndWithCrLf) {
    EXPECT_EQ(texts_of("a,b\r\n1,2\r\n"), (Texts{{"a", "b"}, {"1", "2"}}));
}

TEST(CsvRows, SkipBlankLinesSpacesAndAByteOrderMark) {
    EXPECT_EQ(texts_of("\xef\xbb\xbf\n \t\r\n a , b\t\n\n"), (Texts{{"a", "b"}}));
}

TEST(CsvRows, QuotesKeepCommasSpacesAndLinesTogether) {
    EXPECT_EQ(texts_of("\"a,\"\"b\"\"\", \" c \"\n\"x\ny\",z"),
              (Texts{{"a,\"b\"", " c "}, {"x\ny", "z"}}));
    EXPECT_EQ(texts_of("\"\",1"), (Texts{{"", "1"}}));
}

TEST(CsvRows, ReportThePositionOfEachCell) {
    CsvRows rows("a,b\n\"x\ny\", 22\n\n 3");
    std::vector<CsvCell> row;
    ASSERT_TRUE(rows.next(row));
    EXPECT_EQ(row[1].column, 3u);
    ASSERT_TRUE(rows.next(row));
    EXPECT_EQ(row[0].line, 2u);
    EXPECT_EQ(row[1].line, 3u);
    EXPECT_EQ(row[1].column, 5u);
    ASSERT_TRUE(rows.next(row));
    EXPECT_EQ(row[0].line, 5u);
    EXPECT_EQ(row[0].column, 2u);
}

TEST(CsvRows, RejectUnclosedQuotes) {
    EXPECT_THROW(texts_of("a,\"b"), CsvProblem);
    EXPECT_THROW(texts_of("\"a\"b,c"), CsvProblem);
    EXPECT_THROW(texts_of("\"a\"\""), CsvProblem);
}

}  // namespace
}  // namespace tensorpool::command::planning
