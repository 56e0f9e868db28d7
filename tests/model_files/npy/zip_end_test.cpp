#include <gtest/gtest.h>

#include <string>

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

ZipWriter two_entries() {
    return ZipWriter().add({.name = "a.npy", .data = array}).add({.name = "b.npy", .data = array});
}

TEST(ZipEnd, CountsAndOffsetsAreChecked) {
    const struct {
        const char* field;
        std::uint64_t value;
        const char* text;
    } cases[] = {
        {"disk", 1, "several disks"},
        {"directory disk", 1, "several disks"},
        {"entries here", 1, "several disks"},
        {"bytes", 0x7fffffff, "found a directory of 2147483647 B at byte"},
        {"offset", 0x7fffffff, "at byte 2147483647, expected it before byte"},
    };
    for (const auto& [field, value, text] : cases) {
        WrittenFile file = two_entries().write();
        file.overwrite(std::string("end of directory: ") + field, value);
        expect_refused(file, "end of directory", file.field("end of directory: signature").offset,
                       text);
    }
}

TEST(ZipEnd, ImpossibleEntryCountIsRefused) {
    WrittenFile file = two_entries().zip64().write();
    file.overwrite("zip64 end of directory: entries", ~std::uint64_t{0});
    file.overwrite("zip64 end of directory: entries here", ~std::uint64_t{0});
    expect_refused(file, "end of directory", file.field("zip64 end of directory: signature").offset,
                   "found 18446744073709551615 entries in a directory of");
}

TEST(ZipEnd, LocatorMustPointToTheRecord) {
    WrittenFile file = two_entries().zip64().write();
    file.overwrite("zip64 locator: offset", ~std::uint64_t{0});
    expect_refused(file, "zip64 locator: offset", "expected a record of 56 B before byte");
    file.overwrite("zip64 locator: offset", 0);
    expect_refused(file, "zip64 end of directory: signature", 0, "expected 101075792");
}

TEST(ZipEnd, MissingRecordMeansATruncatedFile) {
    WrittenFile file = two_entries().write();
    file.cut_to(file.size() - 1);
    expect_refused(file, "end of directory", file.size(), "it is cut short");
}

TEST(ZipEnd, TruncatedFileIsRefused) {
    const WrittenFile whole =
        ZipWriter().add({.name = "a.npy", .data = array, .zip64 = true}).zip64().write();
    for (std::uint64_t bytes = 0; bytes < whole.size(); ++bytes) {
        WrittenFile file = whole;
        file.cut_to(bytes);
        EXPECT_TRUE(testing::error_of(file)) << bytes;
    }
    EXPECT_FALSE(testing::error_of(whole));
}

}  // namespace
}  // namespace tensorpool
