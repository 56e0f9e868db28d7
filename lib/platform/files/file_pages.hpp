#pragma once

/// Pages of a mapped file. Addresses and sizes are multiples of `page_bytes()`. None of these calls
/// raises a signal, even if the file is truncated or removed.

#include <cstddef>
#include <cstdint>
#include <string>

namespace tensorpool::platform {

/// The result of a request to the system.
enum class Outcome : std::uint8_t { done, unsupported, refused };

enum class ReadAhead : std::uint8_t { normal, much, none };
/// Sets how much the system reads ahead of the pages that are touched.
Outcome set_read_ahead(void* address, std::size_t bytes, ReadAhead how_much) noexcept;
/// Starts reading the pages into memory, without waiting for them.
Outcome begin_to_read(void* address, std::size_t bytes) noexcept;
/// Reads the pages into memory and enters them into the page table of the process. Also returns
/// `refused` if some of them are beyond the end of the file.
Outcome populate_for_reading(void* address, std::size_t bytes) noexcept;
/// Removes the pages from the page table of the process. They are mapped again at the next access.
Outcome drop_file_pages(void* address, std::size_t bytes) noexcept;
/// Returns how many bytes of the range are in memory; 0 if that is unknown.
std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept;

/// Ends the mapping and keeps its addresses reserved: any access faults. Returns false on failure
/// and then leaves the pages as they were.
[[nodiscard]] bool bar_file_pages(void* address, std::size_t bytes) noexcept;
/// Ends a whole mapping, including pages that were barred.
void unmap_file(void* address, std::size_t bytes) noexcept;

// Pages that the system must keep in memory.

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
