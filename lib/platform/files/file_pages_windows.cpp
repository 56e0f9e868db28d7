#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2  // QueryWorkingSetEx from kernel32

#include "platform/files/file_pages.hpp"

#include <windows.h>
// Must be included after windows.h, which it needs.
#include <psapi.h>

#include <algorithm>
#include <iterator>

#include "platform/platform.hpp"

namespace tensorpool::platform {

// Windows accepts this only when a file is opened.
Outcome set_read_ahead(void*, std::size_t, ReadAhead) noexcept {
    return Outcome::unsupported;
}

Outcome begin_to_read(void* address, std::size_t bytes) noexcept {
    WIN32_MEMORY_RANGE_ENTRY range{address, bytes};
    return PrefetchVirtualMemory(GetCurrentProcess(), 1, &range, 0) ? Outcome::done
                                                                    : Outcome::refused;
}

Outcome populate_for_reading(void*, std::size_t) noexcept {
    return Outcome::unsupported;
}

Outcome drop_file_pages(void* address, std::size_t bytes) noexcept {
    // For pages that are not locked, VirtualUnlock fails with ERROR_NOT_LOCKED and removes them
    // from the working set, as its documentation says.
    if (VirtualUnlock(address, bytes) || GetLastError() == ERROR_NOT_LOCKED) return Outcome::done;
    return Outcome::refused;
}

std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept {
    auto* const begin = static_cast<char*>(const_cast<void*>(address));
    PSAPI_WORKING_SET_EX_INFORMATION pages[256];
    std::size_t resident = 0;
    for (std::size_t at = 0; at < bytes;) {
        DWORD count = 0;
        for (; count < std::size(pages) && at < bytes; ++count, at += page_bytes()) {
            pages[count].VirtualAddress = begin + at;
        }
        if (!QueryWorkingSetEx(GetCurrentProcess(), pages, count * sizeof pages[0])) return 0;
        for (DWORD page = 0; page < count; ++page) {
            resident += pages[page].VirtualAttributes.Valid * page_bytes();
        }
    }
    return resident;
}

// A view can only be unmapped as a whole. A part of it can be made inaccessible and removed from
// the working set.
bool bar_file_pages(void* address, std::size_t bytes) noexcept {
    DWORD before = 0;
    if (!VirtualProtect(address, bytes, PAGE_NOACCESS, &before)) return false;
    VirtualUnlock(address, bytes);
    return true;
}

void unmap_file(void* address, std::size_t) noexcept {
    UnmapViewOfFile(address);
}

}  // namespace tensorpool::platform
