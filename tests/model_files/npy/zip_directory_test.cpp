#include "models/npy/npy.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/model_errors.hpp"
#include "support/model_writers.hpp"

namespace tensorpool {
namespace {

using testing::expect_refused;
using testing::npy_file;
using testing::npy_header;
using testing::WrittenFile;
using testing::ZipWriter;

const std::string array = npy_file(npy_header("|u1", "(5,)"), "12345").bytes();

std::vector<files::ZipEntry> entries_of(const WrittenFile& file) {
    files::ModelContents contents;
    contents.name = "a.npz";
    contents.bytes = file.view();
    return files::read_zip_directory(contents);
}

ZipWriter two_entries() {
    return ZipWriter().add({.name = "a.npy", .data = array}).add({.name = "b.npy", .data = array});
}

void expect_data(const WrittenFile& file) {
    const auto entries = entries_of(file);
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].name, "a.npy");
    EXPECT_EQ(file.bytes().substr(entries[0].data_begin, array.size()), array);
    EXPECT_EQ(entries[0].data_end - entries[0].data_begin, array.size());
}

TEST(ZipDirectory, EntriesKeepItsOrder) {
    const WrittenFile file = two_entries().write();
    const auto entries = entries_of(file);
    ASSERT_EQ(entries.size(), 2U);
    EXPECT_EQ(entries[0].name, "a.npy");
    EXPECT_EQ(entries[0].header_begin, 0U);
    EXPECT_EQ(entries[1].name, "b.npy");
    EXPECT_EQ(entries[1].header_begin, entries[0].data_end);
}

TEST(ZipDirectory, Zip64ValuesAreRead) {
    expect_data(ZipWriter().add({.name = "a.npy", .data = array, .zip64 = true}).write());
    expect_data(ZipWriter().add({.name = "a.npy", .data = array, .zip64 = true}).zip64().write());
    expect_data(ZipWriter().add({.name = "a.npy", .data = array}).zip64().write());
}

TEST(ZipDirectory, SizesMayFollowTheData) {
    expect_data(ZipWriter().add({.name = "a.npy", .data = array, .sizes_behind = true}).write());
}

TEST(ZipDirectory, CommentMayFollow) {
    expect_data(ZipWriter().add({.name = "a.npy", .data = array}).comment("trained today").write());
    expect_data(
        ZipWriter().add({.name = "a.npy", .data = array}).comment(std::string(65535, 'c')).write());
}

TEST(ZipDirectory, CompressedEntriesAreRefusedWithAHint) {
    const WrittenFile file = ZipWriter().add({.name = "a.npy", .data = array, .method = 8}).write();
    expect_refused(file, "entry 0 'a.npy': method", 0,
                   "save with numpy.savez instead of numpy.savez_compressed");
}

TEST(ZipDirectory, EncryptedEntriesAreRefused) {
    const WrittenFile file = ZipWriter().add({.name = "a.npy", .data = array, .flags = 1}).write();
    expect_refused(file, "entry 0 'a.npy': flags", 0, "found an encrypted entry");
}

TEST(ZipDirectory, NameMustBeUtf8) {
    const WrittenFile file = ZipWriter().add({.name = "\x81.npy", .data = array}).write();
    expect_refused(file, "entry 0 '\\x81.npy': name", file.field("entry 0 '\x81.npy': name").offset,
                   "expected UTF-8");
}

TEST(ZipDirectory, LocalHeadersMustMatchTheDirectory) {
    const struct {
        const char* field;
        std::uint64_t value;
        const char* text;
    } cases[] = {
        {"local method", 8, "found 8 in its own header, expected 0 as in the directory"},
        {"local flags", 2, "found 2 in its own header, expected 0"},
        {"local size", 7, "found 7 in its own header, expected 133"},
        {"local compressed size", 7, "found 7 in its own header, expected 133"},
        {"local name", 'x', "found 'x\\x00\\x00\\x00\\x00' in its own header, expected 'b.npy'"},
    };
    for (const auto& [field, value, text] : cases) {
        WrittenFile file = two_entries().write();
        const std::string name = std::string("entry 1 'b.npy': ") + field;
        file.overwrite(name, value);
        const std::uint64_t own = file.field("entry 1 'b.npy': local signature").offset;
        expect_refused(file, name, own, text);
    }
}

TEST(ZipDirectory, OffsetsMustPointToHeaders) {
    WrittenFile file = two_entries().write();
    file.overwrite("entry 1 'b.npy': offset", 4);
    expect_refused(file, "entry 1 'b.npy': local signature", 4, "expected 67324752");
    file.overwrite("entry 1 'b.npy': offset", 0x7fffffff);
    expect_refused(file, "entry 1 'b.npy': offset", "found 2147483647, expected one before");
}

TEST(ZipDirectory, OverlappingEntriesAreRefused) {
    // The first entry's data contains a header for the second.
    const WrittenFile inner = ZipWriter().add({.name = "b.npy", .data = array}).write();
    const WrittenFile outer = ZipWriter()
                                  .add({.name = "a.npy", .data = inner.bytes()})
                                  .add({.name = "b.npy", .data = array})
                                  .write();
    WrittenFile file = outer;
    const std::uint64_t data = file.field("entry 0 'a.npy': data").offset;
    file.overwrite("entry 1 'b.npy': offset", data);
    expect_refused(file, "entry 1 'b.npy': offset", data, "found it within entry 'a.npy'");
}

TEST(ZipDirectory, DataBeyondTheDirectoryIsRefused) {
    WrittenFile file = ZipWriter().add({.name = "a.npy", .data = array}).write();
    for (const char* const field :
         {"compressed size", "size", "local compressed size", "local size"}) {
        file.overwrite(std::string("entry 0 'a.npy': ") + field, 1000);
    }
    const std::uint64_t data = file.field("entry 0 'a.npy': data").offset;
    expect_refused(file, "entry 0 'a.npy': data", data, "found 133 B to the end, expected 1000 B");
}

TEST(ZipDirectory, MustEndWithItsLastEntry) {
    WrittenFile file = two_entries().write();
    file.overwrite("end of directory: entries", 1);
    file.overwrite("end of directory: entries here", 1);
    expect_refused(file, "directory", file.field("entry 1 'b.npy': signature").offset,
                   "behind its 1 entries, expected none");
}

}  // namespace
}  // namespace tensorpool
