#include "platform/files/file_pages.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <string>
#include <system_error>

#include "platform/files/input_file.hpp"
#include "platform/platform.hpp"
#include "support/file_tree.hpp"

namespace tensorpool::platform {
namespace {

TEST(FilePages, AreReadDroppedAndBarred) {
    const testing::FileTree tree;
    const std::size_t page = page_bytes();
    tree.write("/file", std::string(3 * page, 'x'));
    std::error_code error;
    const FileMapping mapping =
        InputFile::open(tree.path("/file").c_str(), error).map(0, 3 * page, false, error);
    ASSERT_NE(mapping.address, nullptr);
    char* const bytes = static_cast<char*>(mapping.address);
    EXPECT_EQ(begin_to_read(bytes, 3 * page), Outcome::done);
    for (const ReadAhead how_much : {ReadAhead::much, ReadAhead::none, ReadAhead::normal}) {
        EXPECT_EQ(set_read_ahead(bytes, 3 * page, how_much), Outcome::done);
    }
    EXPECT_EQ(bytes[3 * page - 1], 'x');
    EXPECT_EQ(drop_file_pages(bytes, 3 * page), Outcome::done);
    EXPECT_EQ(bytes[page], 'x');
    EXPECT_TRUE(bar_file_pages(bytes, page));
    EXPECT_EQ(resident_file_bytes(bytes + page, 2 * page), 2 * page);
    unmap_file(bytes, mapping.bytes);
    EXPECT_EQ(drop_file_pages(bytes, page), Outcome::refused);
    EXPECT_EQ(begin_to_read(bytes, page), Outcome::refused);
    EXPECT_EQ(resident_file_bytes(bytes, page), 0U);
}

}  // namespace
}  // namespace tensorpool::platform
