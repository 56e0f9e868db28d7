#pragma once

/// @file
/// A trace in memory: all calls of all its processes in the order of time.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <tensorpool/trace_format.hpp>

namespace tensorpool::command::trace {

struct RecordedProcess {
    std::uint64_t number = 0;
    std::string name;
    std::uint64_t page_bytes = 4096;
    std::uint64_t stack_interval = 0;  ///< 0: no stacks were sampled
    bool from_start = false;           ///< no call came before the recording
    bool ended = false;                ///< the recording ended in order
    std::uint64_t begun_unix_ns = 0;
    std::uint64_t dropped = 0;  ///< entries that found no room in a ring
};

struct RecordedThread {
    std::uint32_t process = 0;  ///< index into Recording::processes
    std::uint64_t number = 0;   ///< as the system counts threads; 0: not known
};

/// A pool, an arena, a scratch, a device allocator or a scope.
struct RecordedSource {
    std::uint32_t process = 0;
    TraceSource kind = TraceSource::pool;
    std::uint64_t number = 0;
    std::string name;
};

struct RecordedModule {
    std::uint32_t process = 0;
    std::uint64_t number = 0;
    std::string path;
};

struct RecordedFrame {
    std::uint32_t module = 0;  ///< index into Recording::modules
    std::uint64_t offset = 0;  ///< in the module's file image
    friend bool operator==(const RecordedFrame&, const RecordedFrame&) = default;
};

struct Call {
    std::uint64_t time_ns = 0;  ///< since Recording::begun_unix_ns
    std::uint64_t address = 0;  ///< as TraceAction tells
    std::uint64_t bytes = 0;
    std::uint32_t thread = 0;  ///< index into Recording::threads
    std::uint32_t source = 0;  ///< index into Recording::sources
    std::uint32_t stack = 0;   ///< index into Recording::stacks; 0: none was sampled
    TraceAction action = TraceAction::none;
    std::uint8_t alignment_log2 = 0;
    std::uint16_t stream = 0;  ///< of a device's block: index into Recording::streams
};

/// What a source holds from a moment on.
struct CapacityChange {
    std::uint64_t time_ns = 0;  ///< as Call::time_ns
    std::uint64_t bytes = 0;
    std::uint32_t source = 0;  ///< index into Recording::sources
};

struct Recording {
    std::vector<RecordedProcess> processes;
    std::vector<RecordedThread> threads;
    /// The first is "?": of calls that tell none. One whose name was left out is "?" too.
    std::vector<RecordedSource> sources;
    /// The first is "?": of frames that are no file's code, and whose offset is the address.
    std::vector<RecordedModule> modules;
    /// Handles of a device's streams. The first is the default one's, which is 0, and that of all
    /// beyond the 65,535th too.
    std::vector<std::uint64_t> streams = {0};
    std::vector<std::vector<RecordedFrame>> stacks;  ///< innermost frame first; the first is empty
    /// By time; those of one thread in their order. None are `none`, `thread`, `frames`,
    /// `capacity` or `stream`.
    std::vector<Call> calls;
    /// By time; 0 where a source went. Empty where the recorder does not tell them.
    std::vector<CapacityChange> capacities;
    std::uint64_t begun_unix_ns = 0;  ///< of the process that began first; 0: not known
    std::uint64_t cut_bytes = 0;      ///< at the end of the file, which were no whole chunk
};

/// Reads a trace, or a log of RMM (CSV with Thread,Time,Action,Pointer,Size,Stream), which it tells
/// by its first line. Throws TraceError where it is damaged, and CommandError where it cannot be
/// opened. Takes some 45 bytes a call.
Recording read_recording(const std::string& path);
/// The same of bytes in memory; `name` stands in errors.
Recording read_recording(std::span<const std::byte> bytes, const std::string& name);

/// One block, from the call that made it to the one that ended it.
struct Life {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t begin = none;  ///< index into Recording::calls; none: before the recording
    std::uint32_t end = none;    ///< the same; none: it was alive at the end
    std::uint32_t process = 0;
    std::uint32_t source = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< asked for; of one made before the recording: of its block
    /// Resized where it stands: the life before ended by the same call.
    bool continues = false;
    std::uint32_t deferred = none;  ///< the call by which its owner freed it, where it lived on
    std::uint16_t stream = 0;       ///< as Call::stream
};

/// The lives of a recording's blocks in the order of their beginnings, those made before it first.
/// What a release of an arena or a scratch ends is ended; of a block whose end was dropped, the
/// life ends where its address is given out again.
std::vector<Life> lives_of(const Recording& recording);

}  // namespace tensorpool::command::trace
