#include "pages/failing_system.hpp"

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <utility>

#include "pages/address_space.hpp"
#include "platform/platform.hpp"

namespace tensorpool::testing {
namespace {

constexpr int advice_populate_write = 23;  // MADV_POPULATE_WRITE, since Linux 5.14

bool is_in_reservation(const void* address) {
    const pages::PageMap& map = pages::address_space().map();
    return map.page_count() != 0 && address >= map.address_of(0) &&
           address < map.address_of(0) + std::size_t{map.page_count()} * pages::page_bytes;
}

bool is_refused(void* address, SystemCall for_pages, SystemCall for_others) {
    if (!Failing::fails(is_in_reservation(address) ? for_pages : for_others)) return false;
    errno = ENOMEM;
    return true;
}

}  // namespace
}  // namespace tensorpool::testing

// These functions replace those of the C library in this program. They are called before the
// program and its sanitizer are initialized. They are therefore not instrumented, and use nothing
// else before a Failing exists.
#define TENSORPOOL_NOT_WATCHED __attribute__((no_sanitize("thread", "address", "undefined")))

extern "C" TENSORPOOL_NOT_WATCHED int mprotect(void* address, std::size_t bytes,
                                               int protection) noexcept {
    using namespace tensorpool::testing;
    if (__atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) &&
        is_refused(address, SystemCall::commit_pages, SystemCall::commit_records)) {
        return -1;
    }
    return static_cast<int>(syscall(SYS_mprotect, address, bytes, protection));
}

extern "C" TENSORPOOL_NOT_WATCHED int madvise(void* address, std::size_t bytes,
                                              int advice) noexcept {
    using namespace tensorpool::testing;
    if (advice == MADV_DONTNEED && __atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) &&
        is_refused(address, SystemCall::decommit_pages, SystemCall::decommit_map)) {
        return -1;
    }
    if (advice == advice_populate_write && before_populating) {
        std::exchange(before_populating, nullptr)();
    }
    return static_cast<int>(syscall(SYS_madvise, address, bytes, advice));
}

extern "C" TENSORPOOL_NOT_WATCHED void* mmap(void* address, std::size_t bytes, int protection,
                                             int flags, int file, off_t offset) noexcept {
    using namespace tensorpool::testing;
    if ((flags & MAP_FIXED) != 0 && __atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) &&
        is_refused(address, SystemCall::decommit_pages, SystemCall::decommit_map)) {
        return MAP_FAILED;
    }
    // `syscall` converts the kernel's error values, -1 to -4095.
    return reinterpret_cast<void*>(
        syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

extern "C" TENSORPOOL_NOT_WATCHED int munmap(void* address, std::size_t bytes) noexcept {
    using namespace tensorpool::testing;
    if (before_unmapping) std::exchange(before_unmapping, nullptr)();
    if (__atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) && is_in_reservation(address) &&
        is_refused(address, SystemCall::decommit_pages, SystemCall::decommit_pages)) {
        return -1;
    }
    return static_cast<int>(syscall(SYS_munmap, address, bytes));
}

// Fails like kernels up to 6.16, which unmap the target first.
extern "C" TENSORPOOL_NOT_WATCHED void* mremap(void* from, std::size_t bytes, std::size_t new_bytes,
                                               int flags, ...) noexcept {
    using namespace tensorpool::testing;
    va_list arguments;
    va_start(arguments, flags);
    void* const to = va_arg(arguments, void*);
    va_end(arguments);
    if (__atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) &&
        is_refused(from, SystemCall::move_pages, SystemCall::move_pages)) {
        syscall(SYS_munmap, to, bytes);
        return MAP_FAILED;
    }
    // Kernels from 6.17 on may fail in the middle if the moved memory is several mappings.
    if (__atomic_load_n(&Failing::is_alive, __ATOMIC_ACQUIRE) &&
        is_refused(from, SystemCall::move_second_half, SystemCall::move_second_half)) {
        syscall(SYS_mremap, from, bytes / 2, bytes / 2, flags, to);
        syscall(SYS_munmap, static_cast<char*>(to) + bytes / 2, bytes / 2);
        return MAP_FAILED;
    }
    return reinterpret_cast<void*>(syscall(SYS_mremap, from, bytes, new_bytes, flags, to));
}

extern "C" TENSORPOOL_NOT_WATCHED int getpagesize() noexcept {
    const int claimed = tensorpool::testing::claimed_page_bytes;
    return claimed != 0 ? claimed : static_cast<int>(getauxval(AT_PAGESZ));
}

namespace tensorpool::testing {
namespace {

TEST(Failing, MakesExactlyTheChosenCallsFail) {
    const std::size_t bytes = platform::page_bytes();
    void* const page = platform::map(bytes, bytes);
    ASSERT_NE(page, nullptr);
    {
        const Failing failing(SystemCall::commit_records, 1, 2);
        EXPECT_TRUE(platform::commit(page, bytes));
        EXPECT_FALSE(platform::commit(page, bytes));
        EXPECT_FALSE(platform::commit(page, bytes));
        EXPECT_TRUE(platform::commit(page, bytes));
        EXPECT_TRUE(platform::decommit(page, bytes));
        EXPECT_EQ(Failing::seen(), 4U);
    }
    {
        const Failing failing(SystemCall::decommit_map);
        EXPECT_FALSE(platform::decommit(page, bytes));
        EXPECT_TRUE(platform::commit(page, bytes));
    }
    EXPECT_TRUE(platform::decommit(page, bytes));
    platform::unmap(page, bytes);
}

}  // namespace
}  // namespace tensorpool::testing
