#pragma once

/// @file
/// Measures what the process has used, without allocating memory.

#include <cstdint>
#include <span>

namespace tensorpool::command::replay {

struct Spent {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t user_ns = 0;
    std::uint64_t system_ns = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
};

/// Returns the totals of all threads. Only differences between two calls are meaningful.
Spent spent_so_far() noexcept;

/// Resets the peak of resident memory to the current value. Returns false if the system refuses.
bool reset_peak() noexcept;
/// Returns the resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it cannot be
/// read.
std::uint64_t resident_bytes() noexcept;
/// Returns the maximum resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it
/// cannot be read.
std::uint64_t peak_bytes() noexcept;

/// Stores the name, without its folder, of the file that `address` is mapped from, as in
/// /proc/self/maps. The name is cut to the size of `name`; it is "" if there is no file.
void file_of(const void* address, std::span<char> name) noexcept;

}  // namespace tensorpool::command::replay
