#pragma once

#include <cstdint>
#include <string_view>

#include <tensorpool/timeline.hpp>

namespace tensorpool::statistics {

/// Puts an entry on the process's timeline: with the time, the calling thread and the first 23
/// bytes of `name`. Without a segment there is none. Any thread, any time, signal handlers too:
/// takes no lock, allocates nothing, waits for nobody. Some 0.2 us, most of it the system's answer
/// which thread this is.
void write_entry(EntryKind kind, LimitKind limit, std::uint64_t bytes,
                 std::string_view name) noexcept;

}  // namespace tensorpool::statistics
