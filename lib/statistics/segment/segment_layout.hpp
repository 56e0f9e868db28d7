#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/counters.hpp>

#include "statistics/metrics/arena_metrics.hpp"
#include "statistics/metrics/device_metrics.hpp"
#include "statistics/metrics/planned_metrics.hpp"
#include "statistics/metrics/pool_metrics.hpp"

/// What the segment of a process holds and where: one file of fixed size, of which only the pages
/// in use take memory. The process writes it, any other may read it. Offsets and numbers, no
/// pointers; every word is atomic. Integers are the machine's own, which a reader shares.
///
///     header | timeline | scopes | pools | arenas and scratches | devices | their streams |
///     planned arenas | slots of threads
///
/// A place that is taken has a number above 0 in `id`, which nothing else of its kind ever had.
/// Structure (which places are taken, and by whom) changes between two additions to `epoch`, which
/// is odd meanwhile; figures change at any time. Places at and above a kind's `used` were never
/// taken, and what has no place is counted in `left_out` and added up in place 0, whose name is
/// `other`.
///
/// The child of a fork has a copy of all of it. A device's driver does not follow a fork: what the
/// copy tells of a device's allocators is what they held at that moment, in the parent's memory,
/// and it changes only where the child goes on with one that serves the host.
namespace tensorpool::statistics {

using detail::Counter;

inline constexpr std::uint64_t segment_magic = 0x6c6f6f70726f736e;  // "nsorpool" in memory
inline constexpr std::uint64_t segment_version = 3;
inline constexpr std::size_t segment_bytes = std::size_t{16} << 20;

/// Up to 47 bytes of UTF-8, then zeros, as words, so that a reader may meet a writer.
struct Name {
    static constexpr std::size_t bytes = 48;
    Counter words[bytes / 8];
};

/// An entry of the timeline. `ticket` is 0 where there was none yet, otherwise twice the number of
/// the entry, counted from 1, and one more while it is written (see timeline.hpp).
struct alignas(64) EntryRecord {
    Counter ticket;
    Counter time_ns;  // of the monotonic clock
    Counter thread;   // the system's number
    Counter what;     // kind in the low byte, limit in the next
    Counter bytes;
    Counter name[3];  // of the pool, arena or scope: 23 bytes at most
};
static_assert(sizeof(EntryRecord) == 64);

/// What scopes of one name did, on all threads, up to their ends.
struct alignas(64) ScopeRecord {
    Counter id;
    Name name;
    Counter calls;
    Counter open;  // begun and not ended
    Counter allocations;
    Counter deallocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocated_bytes;
    Counter peak_bytes;    // the most net growth within one of them
    Counter out_of_order;  // ended before one that began inside them, or on another thread
};
static_assert(sizeof(ScopeRecord) == 128);

/// One pool.
struct alignas(64) PoolRecord {
    Counter id;
    Name name;
    Counter limit_bytes;  // 0: none
    Counter threads;      // that have a slot now
    PoolTotals totals;
    detail::ThreadCounters shared;  // of calls of threads without a slot; its writer holds a lock
    // Of threads whose slots have no place: added up here for readers from outside only, now and
    // then. The process itself has the slots.
    detail::ThreadCounters left_out;
};

/// Of ArenaRecord::used.
inline constexpr std::uint64_t used_mask = (std::uint64_t{1} << 47) - 1;

/// One arena or one scratch.
struct alignas(64) ArenaRecord {
    Counter id;
    Name name;
    Counter kind;    // an ArenaStatistics::Kind
    Counter thread;  // a scratch's
    ArenaTotals totals;
    // In a line of its own: written by every allocation. What is in use are the bits of used_mask;
    // what lies above is the arena's own business.
    alignas(64) Counter used;
    Counter high;  // a scratch's: the most in use since it last counted its peak
};

/// One allocator of device memory, or of pinned memory.
struct alignas(64) DeviceRecord {
    Counter id;
    Name name;
    Counter kind;       // a DeviceStatistics::Kind
    Counter device[2];  // its text, such as "cuda:0": 15 bytes, then zeros
    DeviceTotals totals;
    // Of streams whose counters have no place: added up here now and then, for readers from outside
    // only.
    DeviceStreamCounters left_out;
};

/// The counters of one stream for one device allocator. Cumulative, as those of a thread.
struct alignas(64) DeviceStreamRecord {
    DeviceStreamCounters counters;
    Counter id;      // 0: nobody's
    Counter device;  // the allocator's id
    Counter stream;  // that counts in it: 0 for the default stream, others as they came, from 1
    Counter spare[5];
};

/// One arena that serves a plan.
struct alignas(64) PlannedRecord {
    Counter id;
    Name name;
    Counter state;  // a PlannedArenaStatistics::State
    PlannedTotals totals;
};

/// The counters of one thread for one pool. Cumulative: when its thread ends, the next one goes on
/// with it, so that nothing is folded in or counted twice.
struct alignas(64) SlotRecord {
    detail::ThreadCounters counters;
    Counter pool;    // the pool's id; 0: no pool's
    Counter thread;  // that counts in it now; 0: none
    Counter next;    // of one that is no pool's: 1 + the place of the next such one, 0 for none
    Counter spare[5];
};

inline constexpr std::size_t entry_count = 512;
inline constexpr std::size_t scope_count = 65;
inline constexpr std::size_t pool_count = 1024;
inline constexpr std::size_t arena_count = 4096;
inline constexpr std::size_t device_count = 256;
inline constexpr std::size_t device_stream_count = 1024;
inline constexpr std::size_t planned_count = 256;
inline constexpr std::size_t slot_count = 12288;

/// How much of a kind there is.
struct Region {
    Counter offset;  // from the beginning of the segment
    Counter record_bytes;
    Counter places;
    Counter used;      // places that were ever taken
    Counter left_out;  // now without a place
};

struct alignas(64) SegmentHeader {
    Counter magic;  // stored last when the segment is made, with release
    Counter version;
    Counter bytes;
    Counter header_bytes;
    Counter process;        // its number, in its own name space
    Counter process_space;  // the inode of that name space; 0: not known
    Counter start_ticks;    // of the process, as in /proc/<pid>/stat; 0: not known
    Counter made_ns;        // by the monotonic clock
    Counter made_unix_ns;   // by the wall clock
    Name process_name;
    Name library_version;
    Counter epoch;
    Counter entries;           // of the timeline, lost ones included
    Counter failed_checks[4];  // by CheckKind
    Region timeline;
    Region scopes;
    Region pools;
    Region arenas;
    Region devices;
    Region device_streams;
    Region planned;
    Region slots;
};

constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(SegmentHeader) <= header_bytes);

inline constexpr std::size_t timeline_offset = header_bytes;
inline constexpr std::size_t scopes_offset = timeline_offset + entry_count * sizeof(EntryRecord);
inline constexpr std::size_t pools_offset =
    (scopes_offset + scope_count * sizeof(ScopeRecord) + 4095) / 4096 * 4096;
inline constexpr std::size_t arenas_offset =
    (pools_offset + pool_count * sizeof(PoolRecord) + 4095) / 4096 * 4096;
inline constexpr std::size_t devices_offset =
    (arenas_offset + arena_count * sizeof(ArenaRecord) + 4095) / 4096 * 4096;
inline constexpr std::size_t device_streams_offset =
    (devices_offset + device_count * sizeof(DeviceRecord) + 4095) / 4096 * 4096;
inline constexpr std::size_t planned_offset =
    (device_streams_offset + device_stream_count * sizeof(DeviceStreamRecord) + 4095) / 4096 * 4096;
// Not at the beginning of a page, where a thread's table and its caches begin: a load waits for a
// store to the same place in another page, and a pair of calls took a third longer
// (perf/pair.cpp).
inline constexpr std::size_t slots_offset =
    (planned_offset + planned_count * sizeof(PlannedRecord) + 4095) / 4096 * 4096 + 256;
static_assert(slots_offset + slot_count * sizeof(SlotRecord) <= segment_bytes);
static_assert(Counter::is_always_lock_free);
// A change of any of these is another version.
static_assert(segment_version == 3 && sizeof(SegmentHeader) == 576 && sizeof(PoolRecord) == 2048 &&
              sizeof(ArenaRecord) == 256 && sizeof(DeviceRecord) == 448 &&
              sizeof(DeviceStreamRecord) == 128 && sizeof(PlannedRecord) == 320 &&
              sizeof(SlotRecord) == 832);

}  // namespace tensorpool::statistics
