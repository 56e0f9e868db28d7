#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>

#include "platform/platform.hpp"

namespace tensorpool::testing {

/// Returns whether the page at `p` is still mapped.
inline bool is_mapped(const void* p) {
    const std::size_t page = platform::page_bytes();
    const std::uintptr_t begin = reinterpret_cast<std::uintptr_t>(p) / page * page;
    unsigned char state = 0;
    return mincore(reinterpret_cast<void*>(begin), page, &state) == 0 || errno != ENOMEM;
}

}  // namespace tensorpool::testing
