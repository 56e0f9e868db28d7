// Replaces the functions that make the system fail in this program, for all tests of the layer: see
// pages/failing_system.hpp. Memory of arenas and of scratches counts as pages, and so does all
// other memory.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "pages/failing_system.hpp"
#include "platform/platform.hpp"

namespace tensorpool::testing {
namespace {

bool is_refused(SystemCall call) {
    if (!__atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) || !Failing::fails(call)) {
        return false;
    }
    errno = ENOMEM;
    return true;
}

}  // namespace
}  // namespace tensorpool::testing

// These functions replace the C library's in this program. They are called before the program, or a
// sanitizer in it, is ready. So they are not instrumented, and touch nothing else until a Failing
// exists.
#define TENSORPOOL_NOT_WATCHED __attribute__((no_sanitize("thread", "address", "undefined")))

extern "C" TENSORPOOL_NOT_WATCHED int mprotect(void* address, std::size_t bytes,
                                               int protection) noexcept {
    using namespace tensorpool::testing;
    if ((protection & PROT_WRITE) != 0 && is_refused(SystemCall::commit_pages)) return -1;
    return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

extern "C" TENSORPOOL_NOT_WATCHED int madvise(void* address, std::size_t bytes,
                                              int advice) noexcept {
    using namespace tensorpool::testing;
    if (advice == MADV_DONTNEED && is_refused(SystemCall::decommit_pages)) return -1;
    return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}

namespace tensorpool::testing {
namespace {

TEST(ArenaFailingSystem, FailsTheChosenCallsAndNoOthers) {
    const std::size_t bytes = platform::page_bytes();
    void* const page = platform::map(bytes, bytes);
    ASSERT_NE(page, nullptr);
    {
        const Failing failing(SystemCall::commit_pages, 1, 1);
        EXPECT_TRUE(platform::commit(page, bytes));
        EXPECT_FALSE(platform::commit(page, bytes));
        EXPECT_TRUE(platform::commit(page, bytes));
        EXPECT_TRUE(platform::decommit(page, bytes));
    }
    {
        const Failing failing(SystemCall::decommit_pages);
        EXPECT_FALSE(platform::decommit(page, bytes));
        EXPECT_TRUE(platform::commit(page, bytes));
    }
    EXPECT_TRUE(platform::decommit(page, bytes));
    platform::unmap(page, bytes);
}

}  // namespace
}  // namespace tensorpool::testing
