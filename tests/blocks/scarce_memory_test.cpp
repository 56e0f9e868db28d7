#include "blocks/scarce_memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "platform/platform.hpp"

// Replaces the C library's function in this program.
extern "C" int mprotect(void* address, std::size_t bytes, int protection) noexcept {
    if ((protection & PROT_WRITE) != 0 && !tensorpool::testing::ScarceMemory::grants()) {
        errno = ENOMEM;
        return -1;
    }
    return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

namespace tensorpool::testing {
namespace {

TEST(ScarceMemory, GrantsTheStatedNumberAndThenNothing) {
    const std::size_t bytes = platform::page_bytes();
    void* pages[3] = {};
    {
        const ScarceMemory scarce(2);
        for (void*& page : pages) page = platform::map(bytes, bytes);
        EXPECT_EQ(platform::map(bytes, bytes), nullptr);
    }
    EXPECT_NE(pages[0], nullptr);
    EXPECT_NE(pages[1], nullptr);
    EXPECT_EQ(pages[2], nullptr);
    pages[2] = platform::map(bytes, bytes);
    EXPECT_NE(pages[2], nullptr);
    for (void* const page : pages) platform::unmap(page, bytes);
}

}  // namespace
}  // namespace tensorpool::testing
