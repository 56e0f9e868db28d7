#pragma once

/// Pages that the system must not take out of memory. Addresses and sizes are multiples of
/// `page_bytes()`.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tensorpool::platform {

enum class LockRefusal : std::uint8_t {
    none,
    limit,   // of `lock_limits`
    memory,  // there is none to be had
    pages,   // some are not mapped, or lie beyond the end of their file
    other,
};
/// Reads them into memory and keeps them there. Unless it returns `none`, those that were not
/// locked before are not locked, and `error` is the system's number for the reason.
[[nodiscard]] LockRefusal lock_pages(void* address, std::size_t bytes, int& error) noexcept;
/// Locks do not add up: however often they were locked. Unmapped pages among them do not matter.
void unlock_pages(void* address, std::size_t bytes) noexcept;

/// How much a process may lock; SIZE_MAX: all.
struct LockLimits {
    std::size_t soft = SIZE_MAX;
    std::size_t hard = SIZE_MAX;
};
LockLimits lock_limits() noexcept;
/// What the system calls them.
const char* lock_limit_name() noexcept;
/// What this process has locked; 0 also where there is no telling.
std::size_t locked_memory() noexcept;
/// What to do so that these limits are `needed` bytes at least, for people: a phrase that goes on
/// from "to raise it: ".
std::string how_to_raise_lock_limit(std::size_t needed, bool beyond_hard_limit);

/// What there is to be had, and the limit that says so.
struct MemoryRoom {
    std::size_t available = SIZE_MAX;
    std::size_t limit = SIZE_MAX;  // of the container, or the machine's memory
    bool is_of_container = false;
};
MemoryRoom memory_room() noexcept;

}  // namespace tensorpool::platform
