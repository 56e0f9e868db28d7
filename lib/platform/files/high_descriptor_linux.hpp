#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace tensorpool::platform {

/// Gives a descriptor of the library, which exec closes, a high number, out of the way of the
/// program's own: programs expect low ones for their files, close those that they inherited, and
/// may have closed their standard streams, whose output must not go into a file of the library.
/// 64 numbers are tried below the limit or 1024, above which select(2) does not work and the
/// process's table of descriptors would grow. Returns the descriptor as it is if none is free.
inline int move_high(int file) noexcept {
    constexpr rlim_t beyond_others = 1024;
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const int end = static_cast<int>(std::min(limit.rlim_cur, beyond_others));
    const int high = fcntl(file, F_DUPFD_CLOEXEC, std::max(3, end - 64));
    if (high < 0) return file;
    close(file);
    return high;
}

}  // namespace tensorpool::platform
