#pragma once

/// @file
/// What happened lately: the entries that each process keeps in its segment.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// What an entry of the timeline tells.
enum class EntryKind : std::uint8_t {
    growth = 1,  ///< a pool, an arena or a scratch got memory from the system
    give_back,   ///< memory went back to the system
    pressure,    ///< a request was met only after all that was free had been gathered
    limit,       ///< a request was refused for a limit that the program has set
    failure,     ///< a request was refused that the system could not meet
    check,       ///< a check fired
    scope,       ///< the peak of a StatisticsScope's name rose by over a sixteenth
    mark,        ///< the program's own: see mark_timeline
    // What a device allocator did before a request was met, or was not: the steps of pressure, in
    // this order; `bytes` is what each brought.
    completed,     ///< freed blocks whose streams have passed became free
    coalesced,     ///< blocks that all streams had parked joined their neighbours
    aged,          ///< free memory that had missed more chances than most went back
    called_back,   ///< callbacks were asked to free something; `bytes` is what was asked for
    uncached,      ///< all free memory that no work used went back
    synchronized,  ///< the device was waited for, and all free memory went back
    // What it is told to keep: see TimelineSet.
    allocation,  ///< a block out of memory that the device gave for it
    recycle,     ///< a block out of memory that was free already
    release,     ///< a block came back
    profile,     ///< bytes in use
    // What a planned arena did:
    plan,   ///< it made a plan, or took a loaded one; `bytes` is the plan's peak
    drift,  ///< its requests left the plan for good, and it learns anew; `bytes` is that plan's
            ///< peak
};
inline constexpr unsigned entry_kind_count = 21;

/// Which limit a request met.
enum class LimitKind : std::uint8_t {
    none,
    request,        ///< `max_allocation`
    capacity,       ///< `max_capacity`, or the end of a buffer
    memory,         ///< what the system and the container have
    address_space,  ///< what could be reserved
    records,        ///< memory for records of tensorpool's own
};
inline constexpr unsigned limit_kind_count = 6;

/// One entry.
struct TimelineEntry {
    std::uint64_t number = 0;   ///< counted from 1 since the process made its segment
    std::uint64_t time_ns = 0;  ///< since 1970, UTC, by the clock as it was then
    std::uint64_t thread = 0;   ///< the system's number of the thread that wrote it
    EntryKind kind = EntryKind::growth;
    LimitKind limit = LimitKind::none;
    std::uint64_t bytes = 0;  ///< grown, given back, asked for, or the new peak
    std::string name;         ///< of pool, arena or scope, or the mark's text: the first 23 bytes
};

/// What came after an entry, and how many of that were overwritten before they were read.
struct TimelinePart {
    std::vector<TimelineEntry> entries;  ///< oldest first
    std::uint64_t lost = 0;
    std::uint64_t last = 0;  ///< the number to ask for the next time
};

/// "growth", "give-back" and so on; "?" for none.
TENSORPOOL_API const char* to_string(EntryKind kind) noexcept;
/// "max_allocation" and so on; "" for none.
TENSORPOOL_API const char* to_string(LimitKind kind) noexcept;

/// Puts an entry of the program's own on its timeline: `text` is cut to 23 bytes. Without a
/// segment, as before the first pool, it goes nowhere. Any thread, at any time, signal handlers
/// too; takes no lock.
TENSORPOOL_API void mark_timeline(std::string_view text, std::uint64_t bytes = 0) noexcept;

/// What this process keeps of its timeline after entry `number`; 0 for all. Throws std::bad_alloc.
TENSORPOOL_API TimelinePart timeline_since(std::uint64_t number = 0);

/// One JSON object.
TENSORPOOL_API std::string to_json(const TimelineEntry& entry);
/// One line for people, without its end: time of the day in UTC, kind, name, bytes, limit.
TENSORPOOL_API std::string to_text(const TimelineEntry& entry);

}  // namespace tensorpool
