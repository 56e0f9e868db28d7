#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

namespace tensorpool::platform {

/// Gives a descriptor of the library, which exec closes, a high number, out of the way of the
/// program's own: programs rarely have such numbers. 64 are tried below the limit or 1024. Returns
/// the descriptor as it is if none is free.
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
