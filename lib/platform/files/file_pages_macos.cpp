// macOS's replacements for calls that only Linux has. The rest is in file_pages_posix.cpp.

#include "platform/files/file_pages.hpp"

#include <sys/mman.h>

#include <algorithm>

#include "platform/files/input_file.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {

Outcome populate_for_reading(void*, std::size_t) noexcept {
    return Outcome::unsupported;
}

std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    auto* const begin = static_cast<char*>(const_cast<void*>(address));
    char answers[1024];
    const std::size_t most = sizeof answers * page_bytes();
    std::size_t pages = 0;
    for (std::size_t at = 0; at < bytes; at += most) {
        const std::size_t some = std::min(most, bytes - at);
        if (mincore(begin + at, some, answers) != 0) return 0;
        pages += static_cast<std::size_t>(
            std::count_if(answers, answers + some / page_bytes(),
                          [](char answer) { return (answer & MINCORE_INCORE) != 0; }));
    }
    return pages * page_bytes();
}

bool InputFile::drop_from_cache(std::uint64_t, std::uint64_t) const noexcept {
    return false;
}

}  // namespace tensorpool::platform
