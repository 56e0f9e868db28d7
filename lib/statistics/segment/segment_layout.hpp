#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>

#include <tensorpool/detail/arena_words.hpp>
#include <tensorpool/detail/counters.hpp>

#include "statistics/metrics/arena_metrics.hpp"
#include "statistics/metrics/budget_metrics.hpp"
#include "statistics/metrics/device_metrics.hpp"
#include "statistics/metrics/planned_metrics.hpp"
#include "statistics/metrics/pool_metrics.hpp"
#include "statistics/metrics/stash_metrics.hpp"

/// The layout of a process's segment: one file of fixed size, of which only the used pages take
/// memory. The process writes it, and other processes may read it. It contains offsets and numbers
/// but no pointers. Each word is atomic. Integers have the byte order of the machine, which readers
/// share.
///
///     header | timeline | scopes | pools | arenas and scratches | devices | device streams |
///     planned arenas | counters of threads | names of frames | sites | budgets |
///     stashes
///
/// A record in use has a number above 0 in `id`, which no other object of its kind ever had. The
/// structure (which records are in use, and for what) changes between two additions to `epoch`,
/// which is odd during a change. Counters change at any time. Records at and above a kind's `used`
/// were never in use. Objects without a record are counted in `left_out` and summed into the kind's
/// first record, which is named `other`.
///
/// The child of a fork has a copy of the whole segment. A device driver does not support forks. The
/// copied records of device allocators therefore describe the parent's memory at the time of the
/// fork. They change only if the child continues to use an allocator that serves the host.
namespace tensorpool::statistics {

using detail::Counter;

inline constexpr std::uint64_t segment_magic = 0x6c6f6f70726f736e;  // "nsorpool" in memory
inline constexpr std::uint64_t segment_version = 10;
inline constexpr std::size_t segment_bytes = std::size_t{20} << 20;

/// Up to 47 bytes of UTF-8, followed by zeros. Stored as words, so that it can be read while it is
/// written.
struct Name {
    static constexpr std::size_t bytes = 48;
    Counter words[bytes / 8];
};

/// An entry of the timeline. `ticket` is 0 before the first entry in this position. Otherwise it is
/// twice the number of the entry, counted from 1, plus one while the entry is being written (see
/// timeline.hpp).
struct alignas(64) EntryRecord {
    Counter ticket;
    Counter time_ns;  // of the monotonic clock
    Counter thread;   // the system's number of the thread
    Counter what;     // kind in the lowest byte, limit in the next
    Counter bytes;
    Counter name[3];  // of the pool, arena or scope: at most 23 bytes
};
static_assert(sizeof(EntryRecord) == 64);

/// What ended scopes of one name did, on all threads.
struct alignas(64) ScopeRecord {
    Counter id;
    Name name;
    Counter calls;
    Counter open;  // scopes that began and have not ended
    Counter allocations;
    Counter deallocations;
    Counter requested_bytes;
    Counter allocated_bytes;
    Counter deallocated_bytes;
    Counter peak_bytes;    // the highest net growth within one of them
    Counter out_of_order;  // scopes that ended before one that began inside them, or on another
                           // thread
};
static_assert(sizeof(ScopeRecord) == 128);

/// One pool.
struct alignas(64) PoolRecord {
    Counter id;
    Name name;
    Counter limit_bytes;  // 0 means no limit
    PoolTotals totals;
    detail::ThreadCounters shared;  // of threads without counters of their own; the writer holds a
                                    // lock
    // Sums of the threads whose counters have no record. Updated from time to time, for readers in
    // other processes only; the process itself reads the counters.
    detail::ThreadCounters left_out;
};

/// The bits of ArenaWords::used that hold the bytes in use.
inline constexpr std::uint64_t used_mask = (std::uint64_t{1} << 47) - 1;

/// One arena or one scratch.
struct alignas(64) ArenaRecord {
    Counter id;
    Name name;
    Counter kind;    // an ArenaStatistics::Kind
    Counter thread;  // of a scratch
    ArenaTotals totals;
    detail::ArenaWords words;  // the bits of used_mask in `used` are the bytes in use
};

/// One allocator of device memory, or of pinned memory.
struct alignas(64) DeviceRecord {
    Counter id;
    Name name;
    Counter kind;       // a DeviceStatistics::Kind
    Counter device[2];  // device name such as "cuda:0": 15 bytes, then zeros
    DeviceTotals totals;
    // Sums of the streams whose counters have no record. Updated from time to time, for readers in
    // other processes only.
    DeviceStreamCounters left_out;
};

/// The counters of one stream for one device allocator. Cumulative, like those of a thread.
struct alignas(64) DeviceStreamRecord {
    DeviceStreamCounters counters;
    Counter id;      // 0 if the record is free
    Counter device;  // the allocator's id
    Counter stream;  // the stream that counts in it: 0 for the default stream, others from 1 in
                     // order of appearance
    // Why memory is held. Written under the allocator's lock.
    Counter capture;           // of a cache of a capture or a pool: its number; otherwise 0
    Counter held_bytes;        // of the stream's slabs
    Counter free_bytes;        // the part of them in the sets
    Counter waiting_bytes;     // freed bytes that wait for this stream
    Counter waiting_since_ns;  // by the monotonic clock: when the oldest of them was freed; 0: none

    static constexpr bool counts_frees(std::size_t word) noexcept {
        const std::size_t at = word * sizeof(Counter);
        return at == offsetof(DeviceStreamCounters, deallocations) ||
               at == offsetof(DeviceStreamCounters, deallocated_bytes) ||
               at == offsetof(DeviceStreamCounters, deallocated_requested_bytes);
    }
};

/// One budget.
struct alignas(64) BudgetRecord {
    Counter id;
    Name name;
    Counter parent;  // the number of the budget above it; 0 for a root
    BudgetTotals totals;
};

/// What rests under one name: stashes, a map, or frozen blocks.
struct alignas(64) StashRecord {
    Counter id;
    Name name;
    Counter kind;    // a StashStatistics::Kind
    Counter budget;  // the number of the budget that is charged; 0 for none
    StashTotals totals;
};

/// One arena that serves a plan.
struct alignas(64) PlannedRecord {
    Counter id;
    Name name;
    Counter state;  // a PlannedArenaStatistics::State
    PlannedTotals totals;

    /// Also true for counters that are part of another counter in the same way.
    static constexpr bool counts_frees(std::size_t word) noexcept {
        const std::size_t at = word * sizeof(Counter);
        const auto is = [at](std::size_t counter) {
            return at == offsetof(PlannedRecord, totals) + counter;
        };
        return is(offsetof(PlannedTotals, freed_bytes)) ||
               is(offsetof(PlannedTotals, pool_freed_bytes)) ||
               is(offsetof(PlannedTotals, freed_elsewhere_bytes)) ||
               is(offsetof(PlannedTotals, pool_freed_elsewhere_bytes)) ||
               is(offsetof(PlannedTotals, too_large)) ||
               is(offsetof(PlannedTotals, out_of_order)) || is(offsetof(PlannedTotals, unknown)) ||
               is(offsetof(PlannedTotals, still_in_use));
    }
};

/// The counters of one thread for one pool. Cumulative: when the thread ends, another thread
/// continues with them. Nothing has to be added up then, and nothing is counted twice.
struct alignas(64) CountersRecord {
    detail::ThreadCounters counters;
    Counter pool;    // the pool's id; 0 if the record is free
    Counter thread;  // the thread that counts in it now; 0 if there is none
    Counter next;    // of a free record: 1 + the index of the next free one, 0 for none
    Counter series;  // of the block sizes (base/block_sizes.hpp)
    Counter spare[4];

    static constexpr bool counts_frees(std::size_t word) noexcept {
        using detail::BucketCounters;
        using detail::LargeCounters;
        const std::size_t at = word * sizeof(Counter);
        const std::size_t of_bucket = at % sizeof(BucketCounters);
        if (at < sizeof(BucketCounters) * detail::bucket_count) {
            return of_bucket == offsetof(BucketCounters, deallocations) ||
                   of_bucket == offsetof(BucketCounters, returned);
        }
        return at < sizeof(detail::ThreadCounters) &&
               (of_bucket == offsetof(LargeCounters, deallocations) ||
                of_bucket == offsetof(LargeCounters, deallocated_bytes));
    }
};

/// A name that frames of call stacks refer to: the path of a file of code, or a function of Python.
/// Never changed or removed.
struct alignas(64) FrameNameRecord {
    static constexpr std::size_t bytes = 256;
    Counter words[bytes / 8];  // up to 255 bytes, then zeros
};

/// A call stack that allocated a sampled block, and what its blocks hold by the weights of their
/// samples (see heap_profile.hpp). Never removed. The first record is for stacks that found no
/// room. The writer holds a lock. Blocks are counted in units of 1 / `block_units`.
struct alignas(64) SiteRecord {
    static constexpr std::size_t max_frames = 64;
    static constexpr std::size_t lifetime_count = 16;
    static constexpr std::uint64_t block_units = 256;
    // A frame is an offset, or a line of Python, and above it the number of a name, counted from 1.
    static constexpr unsigned offset_bits = 48;

    Counter id;
    Counter samples;
    Counter allocated_bytes;
    Counter allocated_blocks;
    Counter freed_bytes;
    Counter freed_blocks;
    Counter peak_bytes;  // in use at the kept peak
    Counter peak_blocks;
    Counter lifetimes[lifetime_count];  // freed blocks
    Counter frame_count;
    Counter frames[max_frames];  // innermost first

    static constexpr bool counts_frees(std::size_t word) noexcept {
        const std::size_t at = word * sizeof(Counter);
        return at == offsetof(SiteRecord, freed_bytes) || at == offsetof(SiteRecord, freed_blocks);
    }
};

/// The use of the first record of a kind.
enum class First : unsigned char {
    record,       // a record like any other
    other,        // `other`, which sums up the objects without a record
    other_later,  // `other`, created with the first record: programs without such objects do not
                  // need its page
};

/// One kind of record: how many records there are, and where they lie.
template <class T>
struct RecordKind {
    std::size_t count;
    First first = First::other;
    std::size_t shift = 0;  // from the beginning of a page
};

/// All kinds, in the order in which they lie in the segment. A new kind adds its record type and an
/// entry at the end. A record type may have:
///  - `id` and `name`: set by Segment::add; a record without a number above 0 in `id` is free;
///  - `next`: links the free records, so that no search is needed;
///  - `totals`: its counters from there on are summed into `other` for objects without a record;
///  - `counts_frees(word)`: returns which words are copied before all others when a process forks.
inline constexpr std::tuple record_kinds{
    RecordKind<EntryRecord>{.count = 512, .first = First::record},
    RecordKind<ScopeRecord>{.count = 65},
    RecordKind<PoolRecord>{.count = 1024},
    RecordKind<ArenaRecord>{.count = 4096},
    RecordKind<DeviceRecord>{.count = 256},
    RecordKind<DeviceStreamRecord>{.count = 1024},
    RecordKind<PlannedRecord>{.count = 256, .first = First::other_later},
    // Not at the beginning of a page, where a thread's table and its caches begin. A load has to
    // wait for a store to the same offset in another page, which made a pair of calls a third
    // slower (perf/pair.cpp).
    RecordKind<CountersRecord>{.count = 12288, .first = First::record, .shift = 256},
    RecordKind<FrameNameRecord>{.count = 4096, .first = First::record},
    RecordKind<SiteRecord>{.count = 4096, .first = First::record},
    RecordKind<BudgetRecord>{.count = 1024, .first = First::other_later},
    RecordKind<StashRecord>{.count = 512, .first = First::other_later},
};
inline constexpr std::size_t kind_count = std::tuple_size_v<decltype(record_kinds)>;

/// Calls `function` with each kind, in order.
template <class Function>
constexpr void for_each_kind(Function function) {
    std::apply([&](const auto&... kind) { (function(kind), ...); }, record_kinds);
}

template <class Record>
inline constexpr RecordKind<Record> kind_of = std::get<RecordKind<Record>>(record_kinds);
template <class Record>
inline constexpr std::size_t count_of = kind_of<Record>.count;
template <class Record>
inline constexpr std::size_t index_of = [] {
    std::size_t next = 0;
    std::size_t found = 0;
    for_each_kind([&]<class Other>(const RecordKind<Other>&) {
        if constexpr (std::is_same_v<Record, Other>) found = next;
        ++next;
    });
    return found;
}();

/// The records of one kind.
struct Region {
    Counter offset;  // from the beginning of the segment
    Counter record_bytes;
    Counter record_count;
    Counter used;      // records that were ever in use
    Counter left_out;  // objects without a record now
};

/// A range of the process's addresses; 0 bytes if there is none.
struct MemoryRange {
    Counter begin;
    Counter bytes;
};

/// What the heap profile says of all sites together. Bytes are sums of weights.
struct ProfileWords {
    Counter interval;      // the mean distance between samples; 0: none are taken
    Counter live_bytes;    // in use now
    Counter peak_bytes;    // in use at the kept peak, at most what pools held then
    Counter peak_unix_ns;  // when that was; 0: never
    Counter lost_samples;  // not taken because there was no room for their records
    Counter distances;     // the mean distances, in bytes, at which the samples were taken
    Counter requested_bytes_of_ended_pools;
};

/// Kinds of checks, in the order of SegmentHeader::failed_checks.
enum class CheckKind : unsigned char {
    misuse,       ///< an invalid pointer or size
    leak,         ///< blocks still in use when a pool with checks is destroyed
    thread,       ///< use of a single-thread arena by another thread
    scope_order,  ///< a scope that ends before one that began inside it
};

struct alignas(64) SegmentHeader {
    Counter magic;  // stored last when the segment is created, with release
    Counter version;
    Counter bytes;
    Counter header_bytes;
    Counter process;        // its number in its own name space
    Counter process_space;  // the inode of that name space; 0 if unknown
    Counter start_ticks;    // of the process, as in /proc/<pid>/stat; 0 if unknown
    Counter made_ns;        // by the monotonic clock
    Counter made_unix_ns;   // by the wall clock
    Name process_name;
    Name library_version;
    Counter epoch;
    Counter entries;           // of the timeline, including lost ones
    Counter failed_checks[4];  // by CheckKind
    Region regions[kind_count];
    MemoryRange pool_addresses;  // of the memory of all pools; the range grows
    MemoryRange page_map;        // its words for these addresses
    ProfileWords profile;

    template <class Record>
    Region& region() noexcept {
        return regions[index_of<Record>];
    }
    template <class Record>
    const Region& region() const noexcept {
        return regions[index_of<Record>];
    }
};

constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(SegmentHeader) <= header_bytes);

/// The offset of the records of a kind in the segment.
template <class Record>
inline constexpr std::size_t offset_of = [] {
    std::size_t end = header_bytes;
    std::size_t found = 0;
    for_each_kind([&]<class Other>(const RecordKind<Other>& kind) {
        const std::size_t begin = (end + 4095) / 4096 * 4096 + kind.shift;
        if constexpr (std::is_same_v<Record, Other>) found = begin;
        end = begin + kind.count * sizeof(Other);
    });
    return found;
}();

template <class Record>
Record* records_in(SegmentHeader& header) noexcept {
    return reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(&header) + offset_of<Record>);
}
template <class Record>
const Record* records_in(const SegmentHeader& header) noexcept {
    return reinterpret_cast<const Record*>(reinterpret_cast<const std::byte*>(&header) +
                                           offset_of<Record>);
}

inline constexpr std::size_t entry_count = count_of<EntryRecord>;
static_assert(Counter::is_always_lock_free);
// A change of any of these requires a new version.
static_assert(segment_version == 10 && sizeof(SegmentHeader) == 832 && sizeof(PoolRecord) == 2048 &&
              sizeof(ArenaRecord) == 512 && sizeof(DeviceRecord) == 448 &&
              sizeof(DeviceStreamRecord) == 128 && sizeof(PlannedRecord) == 320 &&
              sizeof(CountersRecord) == 832 && sizeof(FrameNameRecord) == 256 &&
              sizeof(SiteRecord) == 768 && sizeof(BudgetRecord) == 128 &&
              sizeof(StashRecord) == 192);
static_assert(offsetof(SegmentHeader, regions) == 216 && offset_of<EntryRecord> == 4096 &&
              offset_of<ScopeRecord> == 36864 && offset_of<PoolRecord> == 49152 &&
              offset_of<ArenaRecord> == 2146304 && offset_of<DeviceRecord> == 4243456 &&
              offset_of<DeviceStreamRecord> == 4358144 && offset_of<PlannedRecord> == 4489216 &&
              offset_of<CountersRecord> == 4571392 && offset_of<FrameNameRecord> == 14798848 &&
              offset_of<SiteRecord> == 15847424 && offset_of<BudgetRecord> == 18993152 &&
              offset_of<StashRecord> == 19124224);
static_assert(offset_of<StashRecord> + count_of<StashRecord> * sizeof(StashRecord) <=
              segment_bytes);

}  // namespace tensorpool::statistics
