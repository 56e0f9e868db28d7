#define NOMINMAX
#define WIN32_LEAN_AND_MEAN
#define PSAPI_VERSION 2  // QueryWorkingSetEx from kernel32

#include <windows.h>
// Must be included after windows.h, which it needs.
#include <psapi.h>

#include <algorithm>
#include <iterator>

#include "platform/files/file_pages.hpp"
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

namespace {

// A process may lock about as much as its minimum working set, which it may raise itself.
struct WorkingSet {
    SIZE_T least = 0;
    SIZE_T most = 0;
};

WorkingSet working_set() noexcept {
    WorkingSet set;
    GetProcessWorkingSetSize(GetCurrentProcess(), &set.least, &set.most);
    return set;
}

/// Raises the working set. The initial one of 50 pages would be too small to lock anything.
bool raise_working_set(std::size_t by) noexcept {
    const WorkingSet set = working_set();
    return SetProcessWorkingSetSize(GetCurrentProcess(), set.least + by, set.most + by) != 0;
}

LockRefusal reason_of(DWORD error) noexcept {
    switch (error) {
        case ERROR_WORKING_SET_QUOTA:
            return LockRefusal::limit;
        case ERROR_NO_SYSTEM_RESOURCES:
        case ERROR_NOT_ENOUGH_MEMORY:
            return LockRefusal::memory;
        case ERROR_INVALID_ADDRESS:
        case ERROR_NOACCESS:
            return LockRefusal::pages;
        default:
            return LockRefusal::other;
    }
}

}  // namespace

LockRefusal lock_pages(void* address, std::size_t bytes, int& error) noexcept {
    if (VirtualLock(address, bytes)) return LockRefusal::none;
    if (GetLastError() == ERROR_WORKING_SET_QUOTA && raise_working_set(bytes) &&
        VirtualLock(address, bytes)) {
        return LockRefusal::none;
    }
    const DWORD reason = GetLastError();
    error = static_cast<int>(reason);
    return reason_of(reason);
}

void unlock_pages(void* address, std::size_t bytes) noexcept {
    // VirtualUnlock fails for a whole range if one page in it is not locked.
    for (std::size_t at = 0; at < bytes; at += page_bytes()) {
        VirtualUnlock(static_cast<char*>(address) + at, page_bytes());
    }
}

LockLimits lock_limits() noexcept {
    const WorkingSet set = working_set();
    return {set.least, set.least};
}

std::size_t locked_memory() noexcept {
    return 0;
}

const char* lock_limit_name() noexcept {
    return "the least size of its working set";
}

std::string how_to_raise_lock_limit(std::size_t needed, bool) {
    return "SetProcessWorkingSetSize with a least size of " + std::to_string(needed) +
           " bytes and more, for which the user needs the right to increase a working set";
}

MemoryRoom memory_room() noexcept {
    return {committable_memory(), total_memory(), false};
}

}  // namespace tensorpool::platform
