#pragma once

#include <span>
#include <type_traits>
#include <utility>

#include "statistics/segment/pool_totals.hpp"

/// The layout of a process's segment: one file of fixed size, of which only the used pages take
/// memory. The process writes it, and other processes may read it. It contains offsets and numbers
/// but no pointers. Each word is atomic. Integers have the byte order of the machine, which readers
/// share.
///
///     header | descriptions | timeline | pools | counters of threads | names of frames | sites |
///     other kinds, in the order in which the process first used them
///
/// The header says of each kind where its records lie and where its description is
/// (a copy of a RecordTable and its lists). A reader needs no other knowledge of the other kinds.
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
inline constexpr std::uint64_t segment_version = 11;
inline constexpr std::size_t segment_bytes = std::size_t{20} << 20;
/// How much a process maps under a small limit of addresses. Records behind this have no room.
inline constexpr std::size_t small_segment_bytes = std::size_t{4} << 20;

/// Up to 47 bytes of UTF-8, followed by zeros. Stored as words, so that it can be read while it is
/// written.
struct Name {
    static constexpr std::size_t bytes = 48;
    Counter words[bytes / 8];
};

/// Stores as many bytes of a text as fit before a final zero. The text is cut before a UTF-8
/// character that does not fit as a whole.
void store_text(std::span<Counter> to, std::string_view text) noexcept;
/// Loads a text into `to`, which has room for all bytes of `from`. The result always ends with a
/// zero, even if the words were overwritten.
void load_text(std::span<const Counter> from, char* to) noexcept;

inline void store_name(Name& to, std::string_view name) noexcept {
    store_text(to.words, name);
}
inline void load_name(const Name& from, char* to) noexcept {
    load_text(from.words, to);
}

struct RecordTable;

/// The use of the first record of a kind.
enum class First : unsigned char {
    record,  // a record like any other
    other,   // `other`, which sums up the objects without a record
};

/// One kind of record, as its owner states it: `Record::layout`. A record type is a standard-layout
/// structure of words, and its alignment is that of a cache line.
struct RecordKind {
    static constexpr std::uint16_t none = UINT16_MAX;

    std::size_t record_bytes;
    std::size_t count;
    First first = First::other;
    std::size_t shift = 0;  // of the first record, from the beginning of a page
    // Offsets of words in a record. A record without a number above 0 in `id` is free.
    std::uint16_t id = 0;
    std::uint16_t name = none;    // a Name
    std::uint16_t next = none;    // links the free records, so that no search is needed
    std::uint16_t thread = none;  // the number of a thread, which changes in the child of a fork
    std::uint16_t folded = none;  // from this word on, objects without a record add to `other`
    bool is_part = false;         // of records of another kind, which a fork copies later
    const RecordTable* table = nullptr;
    // Returns which words are copied before all others when a process forks. nullptr: those that
    // the table reads first.
    bool (*counts_frees)(std::size_t word) noexcept = nullptr;
};

/// Returns the kind of records of a type with a table.
template <class Record>
constexpr RecordKind kind_of(std::size_t count, const RecordTable& table) noexcept {
    RecordKind kind{.record_bytes = sizeof(Record), .count = count, .table = &table};
    kind.id = offsetof(Record, id);
    if constexpr (requires { &Record::name; }) kind.name = offsetof(Record, name);
    if constexpr (requires { &Record::thread; }) kind.thread = offsetof(Record, thread);
    if constexpr (requires { &Record::totals; }) kind.folded = offsetof(Record, totals);
    return kind;
}

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

    static const RecordKind layout;
};
static_assert(sizeof(EntryRecord) == 64);

/// One pool.
struct alignas(64) PoolRecord {
    Counter id;
    Name name;
    Counter limit_bytes;  // 0 means no limit
    PoolTotals totals;
    detail::ThreadCounters shared;  // of threads without counters of their own; under a lock
    // Sums of the threads whose counters have no record. Updated from time to time, for readers in
    // other processes only; the process itself reads the counters.
    detail::ThreadCounters left_out;

    static const RecordKind layout;
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

    static const RecordKind layout;
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

    static const RecordKind layout;
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

    static const RecordKind layout;
    static constexpr bool counts_frees(std::size_t word) noexcept {
        const std::size_t at = word * sizeof(Counter);
        return at == offsetof(SiteRecord, freed_bytes) || at == offsetof(SiteRecord, freed_blocks);
    }
};

inline constexpr RecordKind EntryRecord::layout = {.record_bytes = sizeof(EntryRecord),
                                                   .count = 512,
                                                   .first = First::record,
                                                   .id = RecordKind::none};
inline constexpr RecordKind PoolRecord::layout = {.record_bytes = sizeof(PoolRecord),
                                                  .count = 1024,
                                                  .name = offsetof(PoolRecord, name),
                                                  .folded = offsetof(PoolRecord, totals)};
// Not at the beginning of a page, where a thread's table and its caches begin. A load has to wait
// for a store to the same offset in another page, which made a pair of calls a third slower
// (perf/pair.cpp).
inline constexpr RecordKind CountersRecord::layout = {
    .record_bytes = sizeof(CountersRecord),
    .count = 12288,
    .first = First::record,
    .shift = 256,
    .id = RecordKind::none,
    .next = offsetof(CountersRecord, next),
    .thread = offsetof(CountersRecord, thread),
    .counts_frees = &CountersRecord::counts_frees};
inline constexpr RecordKind FrameNameRecord::layout = {.record_bytes = sizeof(FrameNameRecord),
                                                       .count = 4096,
                                                       .first = First::record,
                                                       .id = RecordKind::none};
inline constexpr RecordKind SiteRecord::layout = {.record_bytes = sizeof(SiteRecord),
                                                  .count = 4096,
                                                  .first = First::record,
                                                  .counts_frees = &SiteRecord::counts_frees};

/// The kinds that every segment has, in the order in which they lie in it.
template <class... Records>
struct RecordTypes {};
inline constexpr RecordTypes<EntryRecord, PoolRecord, CountersRecord, FrameNameRecord, SiteRecord>
    first_kinds;
inline constexpr std::size_t first_kind_count = 5;
inline constexpr std::size_t max_kinds = 24;

/// Calls `function.operator()<Record>()` for each of the first kinds, in order.
template <class Function>
constexpr void for_each_first_kind(Function function) {
    [&]<class... Records>(RecordTypes<Records...>) {
        (function.template operator()<Records>(), ...);
    }(first_kinds);
}

template <class Record>
inline constexpr std::size_t count_of = Record::layout.count;
/// The index of one of the first kinds; first_kind_count for others.
template <class Record>
inline constexpr std::size_t index_of = [] {
    std::size_t next = 0;
    std::size_t found = first_kind_count;
    for_each_first_kind([&]<class Other>() {
        if constexpr (std::is_same_v<Record, Other>) found = next;
        ++next;
    });
    return found;
}();

/// The records of one kind.
struct Region {
    static constexpr std::size_t name_words = 4;

    Counter offset;  // from the beginning of the segment
    Counter record_bytes;
    Counter record_count;  // 0: there was no room
    Counter used;          // records that were ever in use
    Counter left_out;      // objects without a record now
    Counter text_offset;   // of the description; 0 bytes: there is none
    Counter text_bytes;
    Counter name[name_words];  // of the table: up to 31 bytes, then zeros
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
    Counter kinds;             // stored with release, after the region of a new kind
    Counter end;               // of the records of all kinds
    Counter text_end;          // of the descriptions
    Region regions[max_kinds];
    MemoryRange pool_addresses;  // of the memory of all pools; the range grows
    MemoryRange page_map;        // its words for these addresses
    ProfileWords profile;

    /// Returns the records of a kind; a region without records if there are none yet.
    template <class Record>
    const Region& region() const noexcept {
        constexpr std::size_t index = index_of<Record>;
        if constexpr (index < first_kind_count) {
            return regions[index];
        } else {
            return find_region(Record::layout);
        }
    }
    template <class Record>
    Region& region() noexcept {
        return const_cast<Region&>(std::as_const(*this).template region<Record>());
    }
    const Region& find_region(const RecordKind& kind) const noexcept;
};

constexpr std::size_t header_bytes = 4096;
static_assert(sizeof(SegmentHeader) <= header_bytes);
/// Room for the descriptions of all kinds.
constexpr std::size_t text_begin = header_bytes;
constexpr std::size_t text_limit = text_begin + 124 * 1024;

/// The offset of the records of one of the first kinds.
template <class Record>
inline constexpr std::size_t offset_of = [] {
    std::size_t end = text_limit;
    std::size_t found = 0;
    for_each_first_kind([&]<class Other>() {
        const std::size_t begin = (end + 4095) / 4096 * 4096 + Other::layout.shift;
        if constexpr (std::is_same_v<Record, Other>) found = begin;
        end = begin + Other::layout.count * sizeof(Other);
    });
    return found;
}();
/// The end of the records of the first kinds.
inline constexpr std::size_t first_end =
    offset_of<SiteRecord> + count_of<SiteRecord> * sizeof(SiteRecord);

template <class Record>
Record* records_in(SegmentHeader& header) noexcept {
    std::size_t offset = 0;
    if constexpr (index_of<Record> < first_kind_count) {
        offset = offset_of<Record>;
    } else {
        offset = header.region<Record>().offset.load(std::memory_order_relaxed);
    }
    return reinterpret_cast<Record*>(reinterpret_cast<std::byte*>(&header) + offset);
}
template <class Record>
const Record* records_in(const SegmentHeader& header) noexcept {
    return records_in<Record>(const_cast<SegmentHeader&>(header));
}

/// Views a record as an array of its counters.
template <class Record>
inline constexpr std::size_t words_of = sizeof(Record) / sizeof(Counter);
template <class Record>
Counter* as_words(Record& record) noexcept {
    return reinterpret_cast<Counter*>(&record);
}
template <class Record>
const Counter* as_words(const Record& record) noexcept {
    return reinterpret_cast<const Counter*>(&record);
}

inline constexpr std::size_t entry_count = count_of<EntryRecord>;
static_assert(Counter::is_always_lock_free);
// A change of any of these requires a new version.
static_assert(segment_version == 11 && sizeof(SegmentHeader) == 2496 &&
              sizeof(PoolRecord) == 2048 && sizeof(CountersRecord) == 832 &&
              sizeof(FrameNameRecord) == 256 && sizeof(SiteRecord) == 768 && sizeof(Region) == 88);
static_assert(offsetof(SegmentHeader, regions) == 240 && offset_of<EntryRecord> == 131072 &&
              offset_of<PoolRecord> == 163840 && offset_of<CountersRecord> == 2261248 &&
              offset_of<FrameNameRecord> == 12488704 && offset_of<SiteRecord> == 13537280 &&
              first_end == 16683008);

}  // namespace tensorpool::statistics
