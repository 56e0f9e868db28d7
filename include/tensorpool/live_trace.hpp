#pragma once

/// @file
/// Recording of the calls of another process while it runs. Linux only: on other systems no process
/// can be recorded.

#include <functional>
#include <span>

#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool {

/// One moment by both clocks of a trace, as the headers of chunks have it.
struct TraceMoment {
    /// The processor's cycle counter.
    std::uint64_t cycles = 0;
    /// The time in nanoseconds since 1970 UTC.
    std::uint64_t unix_ns = 0;
};

/// Returns the present moment. Any thread may call it.
TENSORPOOL_API TraceMoment trace_moment() noexcept;

/// A piece of what one look at a process found: views that are valid until the next look.
struct TracePart {
    /// What the piece contains.
    TraceChunkKind kind;
    /// For entries, the number of their ring.
    std::uint32_t ring = 0;
    /// For entries, how many of this ring found no room so far.
    std::uint64_t dropped = 0;
    /// The content, in the format of a chunk of a trace file.
    std::span<const std::byte> payload;
};

/// Takes the entries that a process writes into its rings.
///
/// It never stops or slows the process. Entries that are not taken in time are dropped there and
/// counted. One thread at a time may use it. It holds two descriptors and two mappings, so that
/// what was recorded outlives the process.
class TENSORPOOL_API LiveTrace {
public:
    /// Requests that a running process records its calls, with a call stack sampled each
    /// `stack_interval` bytes allocated (0: no stacks).
    ///
    /// The process sees the request when one of its threads next takes a slow path of a pool, such
    /// as for a large block or after some hundred small ones. A process that makes no call of
    /// tensorpool never does. Throws AttachError if the process has no control, cannot be read, or
    /// is recorded already, and std::bad_alloc.
    static LiveTrace ask(std::uint64_t process, std::uint64_t stack_interval = 0);
    /// Returns a recording that owns two descriptors which a process handed to its observer: those
    /// of its control and of its rings. They are closed on an error too. Throws AttachError.
    static LiveTrace take_over(int control, int rings);

    /// Takes over the recording of another object, which then may only be assigned to or destroyed.
    LiveTrace(LiveTrace&&) noexcept;
    /// Gives up its own and takes over the recording of another object, which then may only be
    /// assigned to or destroyed.
    LiveTrace& operator=(LiveTrace&&) noexcept;
    /// Ends the recording's use of the rings. Without `stop`, a process that still runs notices
    /// after a while that no reader is left.
    ~LiveTrace();

    /// Returns whether the process had begun to record at the last look.
    bool has_begun() const noexcept;
    /// Calls `use` with each piece that was written since the last look, in the order of a trace
    /// file: the process first, and names and modules before entries that need them. Returns the
    /// number of entries. Throws AttachError if the rings are damaged, and any exception of `use`.
    std::size_t look(const std::function<void(const TracePart&)>& use);
    /// Requests that the process stops recording. Calls under way may still be recorded.
    void stop() noexcept;
    /// Returns whether the process reports that it stopped. False before a look found that it
    /// began.
    bool has_ended() const noexcept;

    /// Returns the number of the process.
    std::uint64_t process() const noexcept;
    /// Returns the number of its threads that found no ring.
    std::uint64_t threads_left_out() const noexcept;
    /// Returns the number of names that found no room.
    std::uint64_t names_left_out() const noexcept;

private:
    struct State;
    explicit LiveTrace(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
