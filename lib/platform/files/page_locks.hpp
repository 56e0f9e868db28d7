#pragma once

/// Pages that the system must keep in memory. Addresses and sizes are multiples of `page_bytes()`.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tensorpool::platform {

enum class LockRefusal : std::uint8_t {
    none,
    limit,   // the limit of `lock_limits` is reached
    memory,  // no memory is available
    pages,   // some pages are not mapped, or lie beyond the end of their file
    other,
};
/// Reads the pages into memory and keeps them there. Unless it returns `none`, pages that were not
/// locked before are not locked, and `error` is the system's error number.
[[nodiscard]] LockRefusal lock_pages(void* address, std::size_t bytes, int& error) noexcept;
/// Unlocks the pages, however often they were locked: locks are not counted. The range may contain
/// unmapped pages.
void unlock_pages(void* address, std::size_t bytes) noexcept;

/// How many bytes a process may lock; SIZE_MAX means no limit.
struct LockLimits {
    std::size_t soft = SIZE_MAX;
    std::size_t hard = SIZE_MAX;
};
LockLimits lock_limits() noexcept;
/// Returns the system's name of the limit.
const char* lock_limit_name() noexcept;
/// Returns how many bytes this process has locked; 0 if that is unknown.
std::size_t locked_memory() noexcept;
/// Returns instructions for raising the limits to at least `needed` bytes: a phrase that continues
/// "to raise it: ".
std::string how_to_raise_lock_limit(std::size_t needed, bool beyond_hard_limit);

/// How much memory can still be taken, and the limit that applies.
struct MemoryRoom {
    std::size_t available = SIZE_MAX;
    std::size_t limit = SIZE_MAX;  // of the container, or the machine's memory
    bool is_of_container = false;
};
MemoryRoom memory_room() noexcept;

}  // namespace tensorpool::platform
