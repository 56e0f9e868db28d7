#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/timeline.hpp>

namespace tensorpool::events {

/// Writes an entry to the process's timeline, with the time, the calling thread and the first 23
/// bytes of `name`. Does nothing if there is no segment. May be called on any thread at any time,
/// including signal handlers: takes no lock, allocates nothing and never waits. Takes about 0.2 us,
/// most of it for the system call that returns the thread's number.
void write_entry(EntryKind kind, LimitKind limit, std::uint64_t bytes,
                 std::string_view name) noexcept;

}  // namespace tensorpool::events
