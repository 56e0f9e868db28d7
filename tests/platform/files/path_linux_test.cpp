#include "platform/files/system_files_linux.hpp"

#include <gtest/gtest.h>

#include <string>

namespace tensorpool::platform {
namespace {

std::string unescaped(std::string_view text) {
    Path path;
    path.append_unescaped(text);
    return path.c_str();
}

TEST(Path, PartsAreAppendedUnchanged) {
    EXPECT_STREQ((Path("/sys") / "/fs" / "/cgroup").c_str(), "/sys/fs/cgroup");
}

TEST(Path, EmptyPathIsEmptyText) {
    EXPECT_STREQ(Path().c_str(), "");
}

TEST(Path, ShortenTruncatesPath) {
    Path path("/a/b/c");
    path.shorten(4);
    EXPECT_EQ(path.view(), "/a/b");
    EXPECT_STREQ(path.c_str(), "/a/b");
}

TEST(LongerPath, PathIsLongerUntilTheObjectEnds) {
    Path path("/a");
    {
        const LongerPath longer(path, "/b");
        EXPECT_STREQ(longer.c_str(), "/a/b");
        const LongerPath longest(path, "/c");
        EXPECT_STREQ(path.c_str(), "/a/b/c");
    }
    EXPECT_EQ(path.view(), "/a");
    EXPECT_STREQ(path.c_str(), "/a");
}

TEST(LongerPath, NamesNoFileIfItDoesNotFit) {
    Path path("/a");
    EXPECT_STREQ(LongerPath(path, std::string(Path::max_bytes - 2, 'b')).c_str(), "");
    EXPECT_STREQ(path.c_str(), "/a");
    EXPECT_EQ(std::string(LongerPath(path, std::string(Path::max_bytes - 3, 'b')).c_str()).size(),
              Path::max_bytes - 1);
    EXPECT_STREQ(path.c_str(), "/a");
}

TEST(Path, MountinfoEscapesAreDecoded) {
    EXPECT_EQ(unescaped("/my\\040disk\\011x\\134y"), "/my disk\tx\\y");
}

TEST(Path, BackslashWithoutThreeOctalDigitsIsKept) {
    EXPECT_EQ(unescaped("\\04"), "\\04");
    EXPECT_EQ(unescaped("a\\0x0b"), "a\\0x0b");
    EXPECT_EQ(unescaped("\\"), "\\");
}

TEST(Path, LongestPathFits) {
    const std::string longest(Path::max_bytes - 1, 'a');
    EXPECT_EQ(Path(longest).view(), longest);
}

TEST(Path, OverlongPathBecomesAndStaysEmpty) {
    Path path(std::string(Path::max_bytes, 'a'));
    EXPECT_STREQ(path.c_str(), "");
    path.append("/memory.max");
    EXPECT_STREQ(path.c_str(), "");
}

}  // namespace
}  // namespace tensorpool::platform
