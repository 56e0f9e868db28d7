#pragma once

/// @file
/// The calls of another process, recorded while it runs. Linux only: elsewhere there are none.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include <tensorpool/export.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/trace_format.hpp>

namespace tensorpool {

/// One moment by both clocks of a trace, as headers of chunks have it.
struct TraceMoment {
    std::uint64_t cycles = 0;
    std::uint64_t unix_ns = 0;
};

/// Now. Any thread.
TENSORPOOL_API TraceMoment trace_moment() noexcept;

/// What one look at a process brought: views, valid until the next look.
struct TracePart {
    TraceChunkKind kind;
    std::uint32_t ring = 0;     // of entries
    std::uint64_t dropped = 0;  // of entries: how many of this ring found no room so far
    std::span<const std::byte> payload;
};

/// Takes out what a process puts into its rings. It never stops or slows the process; what it does
/// not take in time is dropped there and counted. One thread's at a time. It holds two descriptors
/// and two mappings, so that what was recorded outlives the process.
class TENSORPOOL_API LiveTrace {
public:
    /// Asks a running process to record its calls, with a call stack sampled each
    /// `stack_interval` bytes allocated (0: none). The process sees it when any of its threads next
    /// takes a slow path of a pool, such as for a large block or after some hundred small ones; one
    /// that does nothing with tensorpool never does. Throws AttachError where the process has no
    /// control, cannot be looked into, or is recorded already; and std::bad_alloc.
    static LiveTrace ask(std::uint64_t process, std::uint64_t stack_interval = 0);
    /// Takes over descriptors that a process handed to its observer: of its control and of its
    /// rings, which are closed where this throws too. Throws AttachError.
    static LiveTrace take_over(int control, int rings);

    LiveTrace(LiveTrace&&) noexcept;
    LiveTrace& operator=(LiveTrace&&) noexcept;
    /// Without `stop` a process that still runs notices after a while that nobody reads.
    ~LiveTrace();

    /// Whether the process has begun to record, as the last look found it.
    bool has_begun() const noexcept;
    /// Calls `use` with each piece that came since the last look, in the order of a trace file: the
    /// process first, names and modules before entries that need them. Returns how many entries.
    /// Throws AttachError where what is there is damaged, and what `use` throws.
    std::size_t look(const std::function<void(const TracePart&)>& use);
    /// Asks the process to record no more. Calls under way may still come.
    void stop() noexcept;
    /// Whether it has done so, by its own word. False before a look found that it began.
    bool has_ended() const noexcept;

    /// Its number; and how many of its threads found no ring, or names no place.
    std::uint64_t process() const noexcept;
    std::uint64_t threads_left_out() const noexcept;
    std::uint64_t names_left_out() const noexcept;

private:
    struct State;
    explicit LiveTrace(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace tensorpool
