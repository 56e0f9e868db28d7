#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

/// Address space for four pages, of which the first is committed.
struct Pages {
    Pages() : begin(static_cast<char*>(reserve(4 * page, page))) {
        EXPECT_TRUE(commit(begin, page));
    }
    ~Pages() { release(begin, 4 * page); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    const std::size_t page = page_bytes();
    char* begin;
};

TEST(MoveMemory, MovesContent) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel cannot move memory";
    const Pages pages;
    std::fill_n(pages.begin, pages.page, 'x');
    char* const to = pages.begin + 2 * pages.page;
    ASSERT_TRUE(move_memory(to, pages.begin, pages.page));
    EXPECT_EQ(std::count(to, to + pages.page, 'x'), static_cast<std::ptrdiff_t>(pages.page));
    to[1] = 'y';
    ASSERT_TRUE(move_memory(pages.begin, to, pages.page));
    EXPECT_EQ(pages.begin[1], 'y');
}

TEST(MoveMemory, LeavesWritableZeros) {
    if (!can_move_memory()) GTEST_SKIP() << "this kernel cannot move memory";
    const Pages pages;
    *pages.begin = 'x';
    ASSERT_TRUE(move_memory(pages.begin + pages.page, pages.begin, pages.page));
    EXPECT_EQ(*pages.begin, 0);
    *pages.begin = 'y';
    EXPECT_EQ(pages.begin[pages.page], 'x');
}

TEST(MoveMemory, FailureLeavesZerosAtTarget) {
    const Pages pages;
    *pages.begin = 'x';
    char* const gone = static_cast<char*>(map(pages.page, pages.page));
    unmap(gone, pages.page);
    EXPECT_FALSE(move_memory(pages.begin, gone, pages.page));
    EXPECT_EQ(*pages.begin, 0);
    *pages.begin = 'y';
}

}  // namespace
}  // namespace tensorpool::platform
