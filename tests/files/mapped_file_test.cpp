#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <system_error>
#include <utility>

#include "files/numbered_text.hpp"
#include "platform/platform.hpp"
#include "support/file_tree.hpp"

namespace tensorpool {
namespace {

using files::numbered_text;
using files::text_of;
using testing::FileTree;

const std::size_t page = platform::page_bytes();

/// A file of its own.
struct File {
    explicit File(const std::string& content) { tree.write("/model", content); }
    std::string path() const { return tree.path("/model"); }
    FileTree tree;
};

/// What an error says that `call` throws.
template <class Error, class Call>
std::string error_of(const Call& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "nothing was thrown";
}

TEST(MappedFile, ShowsTheBytesOfTheFile) {
    const std::string content = numbered_text(3 * page + 17);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path());
    EXPECT_EQ(text_of(mapped.bytes()), content);
    EXPECT_EQ(mapped.part(), (FilePart{0, content.size()}));
    EXPECT_EQ(mapped.file_bytes(), content.size());
    EXPECT_EQ(mapped.path(), file.path());
}

TEST(MappedFile, ShowsTheSameWhetherSharedOrNot) {
    const File file(numbered_text(2 * page));
    const MappedFile shared = MappedFile::open(file.path(), {.shared = Shared::yes});
    const MappedFile own = MappedFile::open(file.path(), {.shared = Shared::no});
    EXPECT_EQ(text_of(shared.bytes()), text_of(own.bytes()));
}

TEST(MappedFile, KeepsItsBytesInPlaceWhenItIsMoved) {
    const File file(numbered_text(page));
    MappedFile first = MappedFile::open(file.path());
    const std::byte* const data = first.bytes().data();
    MappedFile second = std::move(first);
    EXPECT_EQ(second.bytes().data(), data);
    MappedFile third = MappedFile::open(file.path());
    third = std::move(second);
    EXPECT_EQ(third.bytes().data(), data);
}

TEST(MappedFile, NamesFileAndReasonWhereThereIsNone) {
    const FileTree tree;
    const std::string path = tree.path("/missing");
    EXPECT_EQ(error_of<std::system_error>([&] { (void)MappedFile::open(path); }),
              "tensorpool: map " + path + ": No such file or directory");
}

TEST(MappedFile, MapsAnEmptyFileAsNothing) {
    const File file("");
    MappedFile mapped = MappedFile::open(file.path());
    EXPECT_TRUE(mapped.bytes().empty());
    EXPECT_EQ(mapped.part(), (FilePart{0, 0}));
    EXPECT_EQ(mapped.prefetch(Prefetch::now), Advised::done);
    EXPECT_EQ(mapped.resident_bytes(), 0U);
    EXPECT_EQ(mapped.unmap(), 0U);
    mapped.copy_to(0, {});
}

}  // namespace
}  // namespace tensorpool
