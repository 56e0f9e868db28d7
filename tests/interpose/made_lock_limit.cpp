// A library behind the interposer that limits locked memory as the system does for a process
// without privileges: the process may not have the right to set a limit that serves a test.

#include "interpose/made_lock_limit.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

namespace tensorpool::testing {

std::size_t made_lock_limit = SIZE_MAX;

}  // namespace tensorpool::testing

using tensorpool::testing::made_lock_limit;

extern "C" int mlockall(int flags) noexcept {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    if ((flags & MCL_CURRENT) != 0 &&
        pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) > made_lock_limit) {
        errno = ENOMEM;
        return -1;
    }
    return static_cast<int>(syscall(SYS_mlockall, flags));
}

extern "C" int getrlimit(__rlimit_resource_t resource, rlimit* limit) noexcept {
    const int result = static_cast<int>(syscall(SYS_prlimit64, 0, resource, nullptr, limit));
    if (resource == RLIMIT_MEMLOCK) limit->rlim_cur = made_lock_limit;
    return result;
}
