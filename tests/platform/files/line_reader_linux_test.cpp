#include "platform/files/system_files_linux.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
    const testing::FileTree files;
    files.write("/file", text);
    LineReader reader(files.path("/file").c_str());
    std::vector<std::string> lines;
    std::string_view line;
    while (reader.next(line)) lines.emplace_back(line);
    return lines;
}

using Lines = std::vector<std::string>;

TEST(LineReader, LinesHaveNoNewline) {
    EXPECT_EQ(lines_of("one\ntwo\n"), (Lines{"one", "two"}));
}

TEST(LineReader, EmptyLinesAreReturned) {
    EXPECT_EQ(lines_of("\n\nx\n"), (Lines{"", "", "x"}));
}

TEST(LineReader, LastLineNeedsNoNewline) {
    EXPECT_EQ(lines_of("one\ntwo"), (Lines{"one", "two"}));
}

TEST(LineReader, EmptyFileHasNoLines) {
    EXPECT_EQ(lines_of(""), Lines{});
}

TEST(LineReader, MissingFileHasNoLines) {
    LineReader reader("/nonexistent/file");
    std::string_view line;
    EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, DirectoryHasNoLines) {
    LineReader reader("/");
    std::string_view line;
    EXPECT_FALSE(reader.next(line));
}

TEST(LineReader, FileLargerThanBufferIsReadCompletely) {
    Lines expected;
    std::string text;
    for (int number = 0; number < 5000; ++number) {
        expected.push_back("line " + std::to_string(number));
        text += expected.back() + "\n";
    }
    EXPECT_EQ(lines_of(text), expected);
}

TEST(LineReader, LineAsLongAsBufferIsReturnedAsPiece) {
    const std::string longest(LineReader::longest_line, 'a');
    EXPECT_EQ(lines_of(longest + "\nnext\n"), (Lines{longest, "next"}));
}

TEST(LineReader, LineJustShorterThanBufferIsComplete) {
    const std::string shorter(LineReader::longest_line - 1, 'a');
    EXPECT_EQ(lines_of("x\n" + shorter + "\nnext\n"), (Lines{"x", shorter, "next"}));
}

TEST(LineReader, RestOfOverlongLineIsSkipped) {
    const std::string begin(LineReader::longest_line, 'a');
    const std::string rest(3 * LineReader::longest_line + 7, 'b');
    EXPECT_EQ(lines_of(begin + rest + "\nnext\n"), (Lines{begin, "next"}));
    EXPECT_EQ(lines_of(begin + rest), (Lines{begin}));
}

}  // namespace
}  // namespace tensorpool::platform
