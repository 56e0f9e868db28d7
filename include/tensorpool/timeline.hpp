#pragma once

/// @file
/// The timeline: the recent events that each process keeps in its segment.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// The kinds of events on the timeline. For the steps of a device allocator under pressure, `bytes`
/// is what each step freed.
enum class EntryKind : std::uint8_t {
    /// A pool, an arena or a scratch got memory from the system.
    growth = 1,
    /// Memory was given back to the system.
    give_back,
    /// A request was met only after all free memory had been gathered.
    pressure,
    /// A request was refused because of a limit that the program set.
    limit,
    /// A request was refused because the system could not meet it.
    failure,
    /// A check failed.
    check,
    /// The peak of a StatisticsScope's name rose by over a sixteenth.
    scope,
    /// An entry of the program's own; see mark_timeline.
    mark,
    /// A device allocator freed blocks whose streams had passed.
    completed,
    /// A device allocator joined the blocks that all streams had parked with their neighbours.
    coalesced,
    /// A device allocator gave back free memory that had missed more chances of reuse than most.
    aged,
    /// A device allocator called callbacks to free memory; `bytes` is the requested size.
    called_back,
    /// A device allocator gave back all free memory that no work used.
    uncached,
    /// A device allocator waited for the device and gave back all free memory.
    synchronized,
    /// A device allocator served a block from new memory of the device; see TimelineSet.
    allocation,
    /// A device allocator served a block from free memory; see TimelineSet.
    recycle,
    /// A block of a device allocator was freed; see TimelineSet.
    release,
    /// The bytes in use of a device allocator; see TimelineSet.
    profile,
    /// A planned arena made or loaded a plan; `bytes` is the plan's peak.
    plan,
    /// The requests of a planned arena left the plan for good, and it learns again; `bytes` is that
    /// plan's peak.
    drift,
};
/// One more than the largest value of EntryKind.
inline constexpr unsigned entry_kind_count = 21;

/// The limit that a request met.
enum class LimitKind : std::uint8_t {
    /// No limit.
    none,
    /// `max_allocation`, the limit for one request.
    request,
    /// `max_capacity`, or the end of a buffer.
    capacity,
    /// The memory that the system and the container have.
    memory,
    /// The address space that can be reserved.
    address_space,
    /// The memory for tensorpool's own records.
    records,
};
/// The number of values of LimitKind.
inline constexpr unsigned limit_kind_count = 6;

/// One event on the timeline.
struct TimelineEntry {
    /// The entry's number, counted from 1 since the process made its segment.
    std::uint64_t number = 0;
    /// The time in nanoseconds since 1970 UTC, by the clock at that time.
    std::uint64_t time_ns = 0;
    /// The system's number of the thread that wrote it.
    std::uint64_t thread = 0;
    /// What happened.
    EntryKind kind = EntryKind::growth;
    /// The limit that was met, if any.
    LimitKind limit = LimitKind::none;
    /// The bytes grown, given back or requested, or the new peak; see EntryKind.
    std::uint64_t bytes = 0;
    /// The first 23 bytes of the name of the pool, arena or scope, or of the mark's text.
    std::string name;
};

/// The entries after a given one.
struct TimelinePart {
    /// The entries, oldest first.
    std::vector<TimelineEntry> entries;
    /// The number of entries that were overwritten before they were read.
    std::uint64_t lost = 0;
    /// The number to pass the next time.
    std::uint64_t last = 0;
};

/// Returns the name of the kind, such as "growth" or "give-back"; "?" for an unknown value.
TENSORPOOL_API const char* to_string(EntryKind kind) noexcept;
/// Returns the name of the limit, such as "max_allocation"; "" for `none`.
TENSORPOOL_API const char* to_string(LimitKind kind) noexcept;

/// Adds an entry of the program's own to its timeline. `text` is cut to 23 bytes. The entry is
/// dropped if there is no segment yet, as before the first pool. Any thread may call it at any
/// time, signal handlers included; it takes no lock.
TENSORPOOL_API void mark_timeline(std::string_view text, std::uint64_t bytes = 0) noexcept;

/// Returns the entries of this process's timeline after entry `number`, as far as it still has
/// them; 0 means all. Throws std::bad_alloc.
TENSORPOOL_API TimelinePart timeline_since(std::uint64_t number = 0);

/// Returns one JSON object whose keys are the names of the fields of TimelineEntry.
TENSORPOOL_API std::string to_json(const TimelineEntry& entry);
/// Returns one line for people, without a newline: the time of day in UTC, kind, name, bytes and
/// limit.
TENSORPOOL_API std::string to_text(const TimelineEntry& entry);

}  // namespace tensorpool
