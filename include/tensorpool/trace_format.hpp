#pragma once

/// @file
/// What a trace file holds: every call on pools, arenas, scratches and device allocators of one
/// process or several.
///
///     header | chunk | chunk | …        a chunk: its header, then `stored_bytes` of payload
///
/// Integers are little-endian. A payload is raw or one zstd frame; after decompression it is what
/// its kind says. Chunks may be cut off anywhere by a full disk or a killed recorder: what lies
/// before the cut is whole. Readers skip kinds that they do not know.
///
/// Entries of one ring stand in the order in which they were written, and time does not go back in
/// them; between rings only the cycle counter tells. A ring is one thread's at a time: `thread`
/// entries tell whose from there on.

#include <cstddef>
#include <cstdint>

namespace tensorpool {

inline constexpr char trace_magic[8] = {'T', 'P', 'T', 'R', 'A', 'C', 'E', '\0'};
inline constexpr std::uint32_t trace_version = 1;
inline constexpr std::uint32_t trace_chunk_magic = 0x4b435054;  // "TPCK"
/// A payload is at most so large, before and after decompression.
inline constexpr std::uint64_t max_trace_chunk_bytes = std::uint64_t{64} << 20;

/// Once, at the beginning of the file.
struct TraceHeader {
    char magic[8];
    std::uint32_t version;
    std::uint32_t header_bytes;  // of this struct: where the first chunk begins
    std::uint64_t reserved[2];   // 0
};
static_assert(sizeof(TraceHeader) == 32);

enum class TraceChunkKind : std::uint16_t {
    process = 1,  ///< one TraceProcess: comes before anything else of its process
    names = 2,    ///< TraceName, any number
    modules = 3,  ///< TraceModule, any number
    entries = 4,  ///< TraceEntry, any number, of one ring
    end = 5,      ///< nothing: the recording of the process ended in order
};

enum class TraceCompression : std::uint16_t { none = 0, zstd = 1 };

struct TraceChunkHeader {
    std::uint32_t magic;
    TraceChunkKind kind;
    TraceCompression compression;
    std::uint32_t process;  // its number (a pid) in its own name space
    std::uint32_t ring;     // of entries: which of the process's rings
    std::uint64_t stored_bytes;
    std::uint64_t bytes;  // after decompression; equal where there is none
    // One moment by two clocks, when the chunk was written: from two such pairs follows how long a
    // cycle is.
    std::uint64_t cycles;
    std::uint64_t unix_ns;
    std::uint64_t dropped;  // of entries: how many of this ring found no room so far
    std::uint64_t check;    // of the words before: trace_check
};
static_assert(sizeof(TraceChunkHeader) == 64);

/// FNV-1a over the words of a chunk's header, taken 64 bits at a time.
constexpr std::uint64_t trace_check(const std::uint64_t (&words)[7]) noexcept {
    std::uint64_t hash = 0xcbf29ce484222325;
    for (const std::uint64_t word : words) hash = (hash ^ word) * 0x100000001b3;
    return hash;
}

struct TraceProcess {
    std::uint64_t process;
    std::uint64_t name_space;   // of its number: an inode; 0: not known
    std::uint64_t start_ticks;  // as in /proc/<pid>/stat; 0: not known
    std::uint64_t begun_cycles;
    std::uint64_t begun_unix_ns;
    std::uint64_t page_bytes;
    std::uint64_t stack_interval;  // bytes allocated between two sampled stacks; 0: none
    std::uint64_t from_start;      // 1: no call came before the recording
    char name[64];                 // of the program, then zeros
};
static_assert(sizeof(TraceProcess) == 128);

enum class TraceSource : std::uint32_t {
    pool = 1,
    arena = 2,
    scratch = 3,
    scope = 4,
    device = 5,   ///< an allocator of device memory, or of pinned memory
    planned = 6,  ///< an arena that serves a plan; what goes to its pool is the pool's
};

/// What the number in `TraceEntry::source` stands for. Numbers are not used again.
struct TraceName {
    std::uint64_t source;
    TraceSource kind;
    std::uint32_t reserved;
    char text[48];  // UTF-8, then zeros
};
static_assert(sizeof(TraceName) == 64);

/// A file that code was loaded from; frames of stacks name it by its number.
struct TraceModule {
    std::uint64_t number;
    char path[248];  // cut to 247 bytes, then zeros
};
static_assert(sizeof(TraceModule) == 256);

enum class TraceAction : std::uint8_t {
    none = 0,
    thread = 1,            ///< address: the thread's number; from here on the ring is its
    allocate = 2,          ///< address, bytes asked for, alignment
    deallocate = 3,        ///< address, bytes of the block
    resize = 4,            ///< address of a block that stays there, new bytes asked for
    refuse = 5,            ///< bytes asked for, alignment: the request was not met
    arena_allocate = 6,    ///< address, bytes asked for, alignment
    arena_mark = 7,        ///< address: the place in the arena; bytes: where the arena begins
    arena_release = 8,     ///< as arena_mark: all that lies from there on has ended
    scratch_allocate = 9,  ///< address, bytes asked for, alignment
    scratch_release = 10,  ///< address: an offset; all that was taken from there on has ended
    scope_begin = 11,
    scope_end = 12,
    frames = 13,  ///< up to three more frames of the stack of the entry before: see TraceFrames
    gone =
        14,  ///< the pool, arena, scratch or device allocator ended, with all that was left in it
    scratch_mark = 15,  ///< address: the offset at which the next block is taken
    capacity = 16,      ///< bytes: what the source holds from here on
    // Of device allocators, beside allocate, deallocate and refuse:
    stream = 17,    ///< address: the handle of the stream that the thread's next allocate is for;
                    ///< where none is told it is the default one, 0
    defer = 18,     ///< address, bytes of the block: its owner freed it, and it is held back until
                    ///< streams have passed; then it is deallocated
    slab = 19,      ///< address, bytes: memory that came from the device
    slab_end = 20,  ///< address, bytes: memory that went back to it
};

struct TraceEntry {
    std::uint64_t cycles;
    std::uint64_t address;
    std::uint64_t bytes;
    std::uint32_t source;  // a number from TraceName; 0: none
    TraceAction action;
    std::uint8_t alignment_log2;
    std::uint16_t reserved;
};
static_assert(sizeof(TraceEntry) == 32);

/// An entry of action `frames`, innermost first.
struct TraceFrames {
    std::uint64_t frames[3];  // module number << 48 | offset in the module's file image
    std::uint32_t reserved;
    TraceAction action;
    std::uint8_t count;  // 1 to 3
    std::uint16_t last;  // 1: the stack ends here
};
static_assert(sizeof(TraceFrames) == 32);

}  // namespace tensorpool
