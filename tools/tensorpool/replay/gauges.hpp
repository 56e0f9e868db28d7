#pragma once

/// @file
/// What a process has used, told without a request for memory.

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

/// Since some moment, by all threads.
Spent spent_so_far() noexcept;

/// Lets the most that was resident begin anew from what is now. False where the system refuses.
bool reset_peak() noexcept;
/// By /proc/self/status: right to some hundred KiB. 0 where it cannot be read.
std::uint64_t resident_bytes() noexcept;
std::uint64_t peak_bytes() noexcept;

/// The name, without its folder, of the file that `address` is mapped from, by /proc/self/maps;
/// cut to `name`. "" where it is from none.
void file_of(const void* address, std::span<char> name) noexcept;

}  // namespace tensorpool::command::replay
