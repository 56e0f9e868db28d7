// On Windows a process may lock about as much as its minimum working set, which it may raise
// itself.

#define NOMINMAX
#define WIN32_LEAN_AND_MEAN

#include "platform/files/page_locks.hpp"

#include <windows.h>

#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

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
