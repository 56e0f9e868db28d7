#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "plan/buffers.hpp"
#include "read_problem.hpp"
#include "tools/temporary_folder.hpp"

namespace tensorpool::command::planning {
namespace {

std::string problem_of(std::string_view csv) {
    return testing::problem_of(read_csv, csv);
}

TEST(ReadCsv, ReadsAPublicBenchmark) {
    const Buffers buffers = read_csv("id,lower,upper,size\n0,995328,1000448,656384\n1,3,4,5\n", "");
    EXPECT_EQ(buffers.lifetimes,
              (std::vector<TensorLifetime>{{995328, 1000448, 656384, 1}, {3, 4, 5, 1}}));
    EXPECT_EQ(buffers.ids, (std::vector<std::string>{"0", "1"}));
    EXPECT_TRUE(buffers.offsets.empty());
    EXPECT_FALSE(buffers.peak_bytes.has_value());
}

TEST(ReadCsv, ReadsColumnsInAnyOrder) {
    const Buffers buffers =
        read_csv("size, offset, upper, alignment, lower, id\r\n8,64,2,32,1,\"a, b\"\r\n\r\n", "");
    EXPECT_EQ(buffers.lifetimes, (std::vector<TensorLifetime>{{1, 2, 8, 32}}));
    EXPECT_EQ(buffers.offsets, std::vector<std::uint64_t>{64});
    EXPECT_EQ(buffers.ids, std::vector<std::string>{"a, b"});
}

TEST(ReadCsv, AcceptsAFileWithoutBuffers) {
    EXPECT_TRUE(read_csv("lower,upper,size\n", "").lifetimes.empty());
}

/// Returns the ids of a file whose other columns are the same in each row.
std::vector<std::string> ids_of(const std::string& rows) {
    return read_csv("id,lower,upper,size\n" + rows, "").ids;
}

TEST(ReadCsv, SkipsBlankLinesSpacesAndAByteOrderMark) {
    EXPECT_EQ(
        read_csv("\xef\xbb\xbf\n \t\r\n lower , upper\t,size\n\n 1 ,2, 3\t\n\n", "").lifetimes,
        (std::vector<TensorLifetime>{{1, 2, 3, 1}}));
}

TEST(ReadCsv, QuotesKeepCommasSpacesAndLinesTogether) {
    EXPECT_EQ(ids_of("\"a,\"\"b\"\"\" ,1,2,3\n\" c \",1,2,3\r\n\"x\ny\",1,2,3\n\"\",1,2,3"),
              (std::vector<std::string>{"a,\"b\"", " c ", "x\ny", ""}));
}

TEST(ReadCsv, CountsLinesWithinQuotes) {
    EXPECT_EQ(problem_of("id,lower,upper,size\n\"x\ny\", 1,2,z"),
              "a file: line 3, column 9 (size): found \"z\", expected bytes: a whole number from 0 "
              "to 2^62 - 1");
}

TEST(ReadCsv, RejectsUnclosedQuotes) {
    for (const char* const row : {"a,\"b", "\"a\"\""}) {
        EXPECT_NE(problem_of(row).find("found an opening quote only"), std::string::npos) << row;
    }
    EXPECT_EQ(problem_of("\"id\"b,c"),
              "a file: line 1, column 5: found text after a closing quote, expected a comma");
}

TEST(ReadCsv, ReportsThePositionOfInvalidValues) {
    EXPECT_EQ(
        problem_of("id,lower,upper,size\n0,1,2,3\n1,2, 3x,4\n"),
        "a file: line 3, column 6 (upper): found \"3x\", expected a time: a whole number from "
        "-2^62 to 2^62");
    EXPECT_EQ(problem_of("lower,upper,size\n5,4,1"),
              "a file: line 2, column 3 (upper): found 4, expected a time above lower, 5");
    EXPECT_EQ(problem_of("lower,upper,size\n1,2"),
              "a file: line 2, column 3: found 2 values, expected 3, one for each column");
    EXPECT_EQ(problem_of("lower,upper,size\n1,2,3,4"),
              "a file: line 2, column 7: found 4 values, expected 3, one for each column");
    EXPECT_EQ(problem_of("lower,upper,size\n\"1,2,3"),
              "a file: line 2, column 1: found an opening quote only, expected a closing quote");
}

TEST(ReadCsv, ReportsInvalidColumns) {
    EXPECT_EQ(problem_of(""),
              "a file: line 1, column 1: found nothing, expected a header line with column names");
    EXPECT_EQ(problem_of("id,lower,upper,bytes\n"),
              "a file: line 1, column 16: found \"bytes\" in the header line, expected "
              "some of id, lower, upper, size, alignment and offset");
    EXPECT_EQ(problem_of("id,lower,size\n"),
              "a file: line 1, column 1: found no column upper, expected lower, upper and size");
    EXPECT_EQ(problem_of("id,lower,id\n"),
              "a file: line 1, column 10 (id): found it twice, expected it once");
}

class WriteCsv : public ::testing::Test {
protected:
    std::string written(const Buffers& buffers, const MemoryPlan& plan) {
        const std::string path = folder_.path() / "plan.csv";
        WrittenFile file(path, "");
        write_csv(buffers, plan, file);
        file.finish();
        std::ostringstream text;
        text << std::ifstream(path).rdbuf();
        return text.str();
    }
    photos::TemporaryFolder folder_;
};

TEST_F(WriteCsv, RoundTrips) {
    Buffers buffers;
    buffers.ids = {"plain", "a,b", "\"", "", " x", "two\nlines", "\xc3\xa4"};
    for (std::int64_t i = 0; i < 7; ++i) buffers.lifetimes.push_back({-i, i + 1, 10, 8});
    MemoryPlan plan;
    plan.offsets = {0, 16, 32, 48, 64, 80, 96};
    const Buffers again = read_csv(written(buffers, plan), "again");
    EXPECT_EQ(again.ids, buffers.ids);
    EXPECT_EQ(again.lifetimes, buffers.lifetimes);
    EXPECT_EQ(again.offsets, plan.offsets);
}

}  // namespace
}  // namespace tensorpool::command::planning
