#pragma once

/// @file
/// A trace in memory: all calls of all its processes, in order of time.

#include <limits>

#include <tensorpool/memory_plan.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool::command::trace {

struct RecordedProcess {
    std::uint64_t number = 0;
    std::string name;
    std::uint64_t page_bytes = 4096;
    std::uint64_t stack_interval = 0;  ///< 0: no stacks were sampled
    bool from_start = false;           ///< no call preceded the recording
    bool ended = false;                ///< the recording was ended properly
    std::uint64_t begun_unix_ns = 0;
    std::uint64_t dropped = 0;  ///< entries lost because a ring was full
};

struct RecordedThread {
    std::uint32_t process = 0;  ///< index into Recording::processes
    std::uint64_t number = 0;   ///< the system's thread id; 0: unknown
};

/// A pool, an arena, a scratch, a device allocator or a scope.
struct RecordedSource {
    std::uint32_t process = 0;
    TraceSource kind = TraceSource::pool;
    std::uint64_t number = 0;
    std::string name;

    /// Returns "global (pool)".
    std::string name_and_kind() const;
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
    std::uint64_t address = 0;  ///< see TraceAction
    std::uint64_t bytes = 0;
    std::uint32_t thread = 0;  ///< index into Recording::threads
    std::uint32_t source = 0;  ///< index into Recording::sources
    std::uint32_t stack = 0;   ///< index into Recording::stacks; 0: none was sampled
    TraceAction action = TraceAction::none;
    std::uint8_t alignment_log2 = 0;
    std::uint16_t stream = 0;  ///< of a device's block: index into Recording::streams
};

struct CapacityChange {
    std::uint64_t time_ns = 0;  ///< like Call::time_ns
    std::uint64_t bytes = 0;
    std::uint32_t source = 0;  ///< index into Recording::sources
};

struct Recording {
    std::vector<RecordedProcess> processes;
    std::vector<RecordedThread> threads;
    /// The first is "?", for calls without a source. Sources whose name is missing are "?" too.
    std::vector<RecordedSource> sources;
    /// The first is "?", for frames outside all files. Their offset is the address.
    std::vector<RecordedModule> modules;
    /// Handles of a device's streams. The first is 0, the default stream, which also stands for all
    /// streams beyond the 65,535th.
    std::vector<std::uint64_t> streams = {0};
    std::vector<std::vector<RecordedFrame>> stacks;  ///< innermost frame first; the first is empty
    /// In order of time; the calls of one thread keep their order. None has the action `none`,
    /// `thread`, `frames`, `capacity` or `stream`.
    std::vector<Call> calls;
    /// In order of time; 0 when a source was destroyed. Empty if the recorder did not record
    /// capacities.
    std::vector<CapacityChange> capacities;
    std::uint64_t begun_unix_ns = 0;  ///< of the process that began first; 0: unknown
    std::uint64_t cut_bytes = 0;      ///< incomplete chunk at the end of the file
};

/// Returns whether a file with these first bytes, at least 64 if it has as many, is a recording.
bool is_recording(std::string_view beginning);
/// Reads a trace, or a log of RMM (CSV with Thread,Time,Action,Pointer,Size,Stream), distinguished
/// by the first line. Throws TraceError if the file is damaged, and CommandError if it cannot be
/// opened. Takes about 45 bytes per call.
Recording read_recording(const std::string& path);
/// Reads a trace or a log from bytes in memory. `name` appears in error messages.
Recording read_recording(std::span<const std::byte> bytes, const std::string& name);

/// The first line of a log of RMM's logging_resource_adaptor.
inline constexpr std::string_view rmm_log_beginning = "Thread,Time,Action,Pointer,Size,Stream";

class Input;
/// Reads a file of chunks (trace_file.hpp). Throws TraceError.
Recording read_trace(Input input);
/// Reads a log of RMM as one process with one pool, "rmm". Times are times of day; if they go back
/// by half a day or more, the next day has begun. Streams are ignored. Throws TraceError.
Recording read_rmm_log(const std::string& text, const std::string& name);

/// The lifetime of one block, from the call that made it to the call that ended it.
struct Lifetime {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t begin = none;  ///< index into Recording::calls; none: before the recording
    std::uint32_t end = none;    ///< index into Recording::calls; none: alive at the end
    std::uint32_t process = 0;
    std::uint32_t source = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;  ///< requested; of blocks made before the recording: block size
    /// Whether the block was resized in place. The previous lifetime ended by the same call.
    bool continues = false;
    std::uint32_t deferred = none;  ///< the call that freed it, if streams kept it alive
    std::uint16_t stream = 0;       ///< like Call::stream
};

/// Returns the lifetimes of a recording's blocks in order of their beginnings, those from before
/// the recording first. A release of an arena or a scratch ends its blocks. If the end of a block
/// was dropped, its lifetime ends when its address is allocated again.
std::vector<Lifetime> lifetimes_of(const Recording& recording);

class LifetimeOrder {
public:
    /// Requires: `lifetimes` are in order of their beginnings.
    explicit LifetimeOrder(std::vector<Lifetime> lifetimes);

    const std::vector<Lifetime>& lifetimes() const noexcept { return lifetimes_; }
    /// The indices of those that ended, in the order of their ends.
    const std::vector<std::uint32_t>& by_end() const noexcept { return by_end_; }

    /// Calls `begin(i)` and `end(i)` with the index of a lifetime, in the order of time. Blocks
    /// from before the recording come first. The ends of a call come before its beginnings.
    template <class Begin, class End>
    void walk(Begin&& begin, End&& end) const {
        std::size_t ended = 0;
        for (std::uint32_t i = 0; i < lifetimes_.size(); ++i) {
            const std::uint32_t now = lifetimes_[i].begin;
            while (now != Lifetime::none && ended < by_end_.size() &&
                   lifetimes_[by_end_[ended]].end <= now) {
                end(by_end_[ended++]);
            }
            begin(i);
        }
        while (ended < by_end_.size()) end(by_end_[ended++]);
    }

private:
    std::vector<Lifetime> lifetimes_;
    std::vector<std::uint32_t> by_end_;
};

/// Returns the lifetimes for a memory plan, in steps of `walk`, so that the blocks that a call ends
/// are freed before it allocates others. Blocks are aligned to 64 bytes, as in the pool, or as
/// requested if that is more.
std::vector<TensorLifetime> steps_of(const Recording& recording, const LifetimeOrder& order);

}  // namespace tensorpool::command::trace
