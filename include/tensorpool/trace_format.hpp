#pragma once

/// @file
/// The format of a trace file, which holds every call on the pools, arenas, scratches and device
/// allocators of one or several processes.
///
///    header | chunk | chunk | …        a chunk: its header, then `stored_bytes` of payload
///
/// Integers are little-endian. A payload is raw or one zstd frame; the chunk's kind defines its
/// content after decompression. A full disk or a killed recorder may cut the file anywhere; the
/// chunks before the cut are complete. Readers skip kinds that they do not know.
///
/// Entries of one ring are in the order in which they were written, and their times never decrease.
/// Between rings only the cycle counter gives an order. A ring belongs to one thread at a time; an
/// entry `thread` says to which one from there on.

#include <cstddef>
#include <cstdint>

namespace tensorpool {

/// The first bytes of a trace file.
inline constexpr char trace_magic[8] = {'T', 'P', 'T', 'R', 'A', 'C', 'E', '\0'};
/// The version of the format.
inline constexpr std::uint32_t trace_version = 1;
/// The first bytes of a chunk: "TPCK".
inline constexpr std::uint32_t trace_chunk_magic = 0x4b435054;
/// The limit of a payload's size, before and after decompression.
inline constexpr std::uint64_t max_trace_chunk_bytes = std::uint64_t{64} << 20;

/// The header at the beginning of the file.
struct TraceHeader {
    /// `trace_magic`.
    char magic[8];
    /// `trace_version`.
    std::uint32_t version;
    /// The bytes of this struct: the offset of the first chunk.
    std::uint32_t header_bytes;
    /// 0.
    std::uint64_t reserved[2];
};
static_assert(sizeof(TraceHeader) == 32);

/// The kinds of chunks.
enum class TraceChunkKind : std::uint16_t {
    /// One TraceProcess; it precedes all other chunks of its process.
    process = 1,
    /// Any number of TraceName.
    names = 2,
    /// Any number of TraceModule.
    modules = 3,
    /// Any number of TraceEntry, of one ring.
    entries = 4,
    /// No payload: the recording of the process ended in order.
    end = 5,
};

/// How a payload is stored.
enum class TraceCompression : std::uint16_t {
    none = 0,  ///< raw
    zstd = 1,  ///< one zstd frame
};

/// The header of a chunk.
struct TraceChunkHeader {
    /// `trace_chunk_magic`.
    std::uint32_t magic;
    /// What the payload contains.
    TraceChunkKind kind;
    /// How the payload is stored.
    TraceCompression compression;
    /// The number (pid) of the process in its own name space.
    std::uint32_t process;
    /// For entries, the number of their ring in the process.
    std::uint32_t ring;
    /// The bytes of the payload in the file.
    std::uint64_t stored_bytes;
    /// The bytes of the payload after decompression.
    std::uint64_t bytes;
    /// The cycle counter when the chunk was written. Two pairs of `cycles` and `unix_ns` give the
    /// length of a cycle.
    std::uint64_t cycles;
    /// The time when the chunk was written, in nanoseconds since 1970 UTC.
    std::uint64_t unix_ns;
    /// For entries, how many of this ring found no room so far.
    std::uint64_t dropped;
    /// The checksum of the words before it: trace_check.
    std::uint64_t check;
};
static_assert(sizeof(TraceChunkHeader) == 64);

/// Returns the checksum of a chunk's header: FNV-1a over its words, 64 bits at a time.
constexpr std::uint64_t trace_check(const std::uint64_t (&words)[7]) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint64_t word : words) hash = (hash ^ word) * 0x100000001b3;
    return hash;
}

/// The description of a recorded process.
struct TraceProcess {
    /// The number of the process.
    std::uint64_t process;
    /// The name space of that number, as an inode; 0 if unknown.
    std::uint64_t name_space;
    /// The start time as in /proc/PID/stat; 0 if unknown.
    std::uint64_t start_ticks;
    /// The cycle counter when the recording began.
    std::uint64_t begun_cycles;
    /// The time when the recording began, in nanoseconds since 1970 UTC.
    std::uint64_t begun_unix_ns;
    /// The bytes of a page.
    std::uint64_t page_bytes;
    /// The bytes allocated between two sampled stacks; 0: no stacks.
    std::uint64_t stack_interval;
    /// 1 if no call preceded the recording.
    std::uint64_t from_start;
    /// The program's name, followed by zeros.
    char name[64];
};
static_assert(sizeof(TraceProcess) == 128);

/// The kinds of objects that calls are recorded of.
enum class TraceSource : std::uint32_t {
    /// A pool.
    pool = 1,
    /// An arena.
    arena = 2,
    /// A scratch.
    scratch = 3,
    /// A scope.
    scope = 4,
    /// An allocator of device memory or of pinned memory.
    device = 5,
    /// A planned arena. Requests that it passes on are recorded for its pool.
    planned = 6,
};

/// The meaning of a number in `TraceEntry::source`. Numbers are not reused.
struct TraceName {
    /// The number.
    std::uint64_t source;
    /// The kind of object.
    TraceSource kind;
    /// 0.
    std::uint32_t reserved;
    /// The object's name in UTF-8, followed by zeros.
    char text[48];
};
static_assert(sizeof(TraceName) == 64);

/// A file from which code was loaded, or a function of Python. Frames refer to it by its number.
struct TraceModule {
    /// The number.
    std::uint64_t number;
    /// The path, cut to 247 bytes, then zeros. A function of Python is "python:function@file".
    char path[248];
};
static_assert(sizeof(TraceModule) == 256);

/// The kinds of entries, and what their fields hold.
enum class TraceAction : std::uint8_t {
    /// No entry.
    none = 0,
    /// `address` is the thread's number; from here on the ring belongs to it.
    thread = 1,
    /// Address, requested bytes, alignment.
    allocate = 2,
    /// Address, bytes of the block.
    deallocate = 3,
    /// Address of a block that does not move, new requested bytes.
    resize = 4,
    /// Requested bytes and alignment of a request that was not met.
    refuse = 5,
    /// Address, requested bytes, alignment.
    arena_allocate = 6,
    /// `address` is the position in the arena, `bytes` the address where the arena begins.
    arena_mark = 7,
    /// Everything from a position on was released. Fields as for `arena_mark`.
    arena_release = 8,
    /// Address, requested bytes, alignment.
    scratch_allocate = 9,
    /// `address` is an offset; everything allocated from there on was released.
    scratch_release = 10,
    /// A StatisticsScope began.
    scope_begin = 11,
    /// A StatisticsScope ended.
    scope_end = 12,
    /// Up to three more frames of the previous entry's stack; see TraceFrames.
    frames = 13,
    /// The pool, arena, scratch or device allocator ended, with everything left in it.
    gone = 14,
    /// `address` is the offset of the next block.
    scratch_mark = 15,
    /// `bytes` is what the source holds from here on.
    capacity = 16,
    /// `address` is the handle of the stream that the thread's next `allocate` of a device
    /// allocator is for. Without this entry it is for the default stream, 0.
    stream = 17,
    /// Address and bytes of a device block that its owner freed. It is held back until streams have
    /// passed, and then deallocated.
    defer = 18,
    /// Address and bytes of memory that came from the device.
    slab = 19,
    /// Address and bytes of memory that went back to the device.
    slab_end = 20,
};

/// One recorded call.
struct TraceEntry {
    /// The cycle counter.
    std::uint64_t cycles;
    /// An address, or a value that `action` defines.
    std::uint64_t address;
    /// A size, or a value that `action` defines.
    std::uint64_t bytes;
    /// The number of the object, from TraceName; 0: none.
    std::uint32_t source;
    /// What happened.
    TraceAction action;
    /// The binary logarithm of the alignment.
    std::uint8_t alignment_log2;
    /// 0.
    std::uint16_t reserved;
};
static_assert(sizeof(TraceEntry) == 32);

/// An entry of action `frames`: up to three frames of a stack, innermost first.
struct TraceFrames {
    /// Each frame: module number << 48 | offset in the module's file image, or line of Python code.
    std::uint64_t frames[3];
    /// 0.
    std::uint32_t reserved;
    /// `TraceAction::frames`.
    TraceAction action;
    /// The number of frames, 1 to 3.
    std::uint8_t count;
    /// 1 if the stack ends here.
    std::uint16_t last;
};
static_assert(sizeof(TraceFrames) == 32);

}  // namespace tensorpool
