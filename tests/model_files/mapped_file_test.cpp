#include <tensorpool/mapped_file.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "model_files/test_file.hpp"
#include "platform/platform.hpp"
#include "support/file_tree.hpp"

namespace tensorpool {
namespace {

using files::error_of;
using files::File;
using files::numbered_text;
using files::text_of;

const std::size_t page = platform::page_bytes();

std::string range_error(const std::string& path, FilePart part) {
    return error_of<std::out_of_range>([&] { (void)MappedFile::open(path, {.part = part}); });
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

TEST(MappedFile, SharedAndPrivateMappingsAreEqual) {
    const File file(numbered_text(2 * page));
    const MappedFile shared = MappedFile::open(file.path(), {.shared = Shared::yes});
    const MappedFile own = MappedFile::open(file.path(), {.shared = Shared::no});
    EXPECT_EQ(text_of(shared.bytes()), text_of(own.bytes()));
}

TEST(MappedFile, MoveKeepsTheAddress) {
    const File file(numbered_text(page));
    MappedFile first = MappedFile::open(file.path());
    const std::byte* const data = first.bytes().data();
    MappedFile second = std::move(first);
    EXPECT_EQ(second.bytes().data(), data);
    MappedFile third = MappedFile::open(file.path());
    third = std::move(second);
    EXPECT_EQ(third.bytes().data(), data);
}

TEST(MappedFile, MissingFileErrorNamesFileAndReason) {
    const testing::FileTree tree;
    const std::string path = tree.path("/missing");
    EXPECT_EQ(error_of<std::system_error>([&] { (void)MappedFile::open(path); }),
              "tensorpool: map " + path + ": No such file or directory");
}

TEST(MappedFile, EmptyFileHasNoBytes) {
    const File file("");
    MappedFile mapped = MappedFile::open(file.path());
    EXPECT_TRUE(mapped.bytes().empty());
    EXPECT_EQ(mapped.part(), (FilePart{0, 0}));
    EXPECT_TRUE(mapped.bytes({0, 0}).empty());
    EXPECT_EQ(mapped.unmap(), 0U);
    mapped.copy_to(0, {});
}

TEST(MappedFile, MapsAnUnalignedPart) {
    const std::string content = numbered_text(5 * page);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path(), {.part = {page + 100, 2 * page + 7}});
    EXPECT_EQ(text_of(mapped.bytes()), content.substr(page + 100, 2 * page + 7));
    EXPECT_EQ(mapped.part(), (FilePart{page + 100, 2 * page + 7}));
}

TEST(MappedFile, MapsFromAnOffsetToTheEnd) {
    const std::string content = numbered_text(2 * page + 5);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path(), {.part = {page + 1}});
    EXPECT_EQ(text_of(mapped.bytes()), content.substr(page + 1));
}

TEST(MappedFile, PartAtTheEndIsEmpty) {
    const File file(numbered_text(100));
    EXPECT_TRUE(MappedFile::open(file.path(), {.part = {100}}).bytes().empty());
    EXPECT_TRUE(MappedFile::open(file.path(), {.part = {7, 0}}).bytes().empty());
}

TEST(MappedFile, RefusesAPartBeyondTheEnd) {
    const File file(numbered_text(100));
    const std::string path = file.path();
    const std::string head = "tensorpool: map " + path + ": ";
    const std::string tail = ", expected to be within its 100 bytes";
    EXPECT_EQ(range_error(path, {101}), head + "the bytes from 101 on" + tail);
    EXPECT_EQ(range_error(path, {50, 51}), head + "51 bytes at offset 50" + tail);
    EXPECT_EQ(range_error(path, {101, 0}), head + "0 bytes at offset 101" + tail);
    EXPECT_EQ(range_error(path, {1, UINT64_MAX - 1}),
              head + "18446744073709551614 bytes at offset 1" + tail);
    EXPECT_EQ(range_error(path, {UINT64_MAX, 2}),
              head + "2 bytes at offset 18446744073709551615" + tail);
}

TEST(MappedFile, BytesOfAPartUseFileOffsets) {
    const std::string content = numbered_text(3 * page);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path(), {.part = {page, page}});
    EXPECT_EQ(text_of(mapped.bytes({page + 10, 20})), content.substr(page + 10, 20));
    EXPECT_EQ(mapped.bytes({page}).size(), page);
    EXPECT_TRUE(mapped.bytes({2 * page, 0}).empty());
    EXPECT_THROW((void)mapped.bytes({page - 1, 1}), std::out_of_range);
    EXPECT_THROW((void)mapped.bytes({2 * page, 1}), std::out_of_range);
    EXPECT_THROW((void)mapped.bytes({2 * page + 1, 0}), std::out_of_range);
}

TEST(MappedFile, CopiesTheContent) {
    const std::string content = numbered_text(3 * page);
    const File file(content);
    const MappedFile mapped = MappedFile::open(file.path());
    std::vector<std::byte> copy(page + 3);
    mapped.copy_to(page - 1, copy);
    EXPECT_EQ(text_of(copy), content.substr(page - 1, page + 3));
}

TEST(MappedFile, CopyOutsideTheMappedPartIsRefused) {
    const File file(numbered_text(3 * page));
    const MappedFile mapped = MappedFile::open(file.path(), {.part = {100, 50}});
    std::vector<std::byte> copy(51);
    EXPECT_EQ(error_of<std::out_of_range>([&] { mapped.copy_to(100, copy); }),
              "tensorpool: read " + file.path() +
                  ": 51 bytes at offset 100, expected to be within the 50 bytes at offset 100 "
                  "that are mapped");
    EXPECT_THROW(mapped.copy_to(99, std::span(copy).first(1)), std::out_of_range);
    EXPECT_NO_THROW(mapped.copy_to(149, std::span(copy).first(1)));
}

TEST(MappedFile, UnmapsTheWholePagesOfAPart) {
    const std::string content = numbered_text(6 * page);
    const File file(content);
    MappedFile mapped = MappedFile::open(file.path());
    EXPECT_EQ(mapped.unmap({page / 2, 3 * page}), 2 * page);  // not the first and last page
    EXPECT_EQ(mapped.unmapped_bytes(), 2 * page);
    EXPECT_EQ(text_of(mapped.bytes({0, page})), content.substr(0, page));
    EXPECT_EQ(text_of(mapped.bytes({3 * page})), content.substr(3 * page));
    EXPECT_EQ(mapped.unmap({10, page - 10}), 0U);
}

TEST(MappedFile, UnmappedPagesAreCountedOnce) {
    const File file(numbered_text(6 * page));
    MappedFile mapped = MappedFile::open(file.path());
    EXPECT_EQ(mapped.unmap({page, 2 * page}), 2 * page);
    EXPECT_EQ(mapped.unmap({page, 2 * page}), 0U);
    EXPECT_EQ(mapped.unmap({0, 4 * page}), 2 * page);
    EXPECT_EQ(mapped.unmap(), 2 * page);
    EXPECT_EQ(mapped.unmapped_bytes(), 6 * page);
}

TEST(MappedFile, UnmapsPartiallyMappedFirstAndLastPages) {
    const File file(numbered_text(4 * page));
    MappedFile part = MappedFile::open(file.path(), {.part = {page + 5, page}});
    EXPECT_EQ(part.unmap({0, page + 6}), 0U);  // only a part of the mapped bytes of the page
    EXPECT_EQ(part.unmap(), 2 * page);
    MappedFile whole = MappedFile::open(file.path(), {.part = {0, page + 1}});
    EXPECT_EQ(whole.unmap({page, 1}), page);
}

TEST(MappedFile, CopiesFromUnmappedParts) {
    const std::string content = numbered_text(2 * page);
    const File file(content);
    MappedFile mapped = MappedFile::open(file.path());
    EXPECT_EQ(mapped.unmap(), 2 * page);
    std::vector<std::byte> copy(2 * page);
    mapped.copy_to(0, copy);
    EXPECT_EQ(text_of(copy), content);
}

}  // namespace
}  // namespace tensorpool
