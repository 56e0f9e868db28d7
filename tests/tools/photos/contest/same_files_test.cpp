#include "contest/same_files.hpp"

#include <gtest/gtest.h>

#include "tools/temporary_folder.hpp"

namespace tensorpool::photos {
namespace {

TEST(SameFiles, ComparesEveryByte) {
    const TemporaryFolder folder;
    const std::string long_text(100'000, 'x');
    const auto one = folder.file("one", long_text);
    EXPECT_TRUE(same_files(one, folder.file("same", long_text)));
    EXPECT_FALSE(same_files(one, folder.file("last", long_text.substr(1) + "y")));
    EXPECT_FALSE(same_files(one, folder.file("longer", long_text + "x")));
    EXPECT_FALSE(same_files(one, folder.file("shorter", long_text.substr(1))));
    EXPECT_FALSE(same_files(one, folder.path() / "missing"));
}

TEST(SameFiles, EmptyFilesAndMultiplesOfTheBufferAreEqual) {
    const TemporaryFolder folder;
    EXPECT_TRUE(same_files(folder.file("a", ""), folder.file("b", "")));
    const std::string part(1 << 15, 'x');
    EXPECT_TRUE(same_files(folder.file("c", part), folder.file("d", part)));
    EXPECT_FALSE(same_files(folder.path() / "c", folder.file("e", part + "x")));
}

}  // namespace
}  // namespace tensorpool::photos
