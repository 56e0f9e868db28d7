#pragma once

#include <sys/resource.h>

#include <cstddef>
#include <fstream>

#include "platform/platform.hpp"

namespace tensorpool::testing {

/// Limits the process to `bytes` of address space more than it uses now. Keeps the hard limit.
inline bool leave_address_space(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = pages * platform::page_bytes() + bytes;
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

/// Raises the limit to the hard limit.
inline bool leave_all_address_space() {
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0) return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_AS, &limit) == 0;
}

}  // namespace tensorpool::testing
