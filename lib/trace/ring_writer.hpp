#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/platform.hpp"
#include "trace/own_ring.hpp"
#include "trace/recording.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::trace {

/// Writes calls into the ring of the thread that makes them: the fast path of a recording. A thread
/// takes a ring at its first recorded call and gives it to another when it ends.
class RingWriter {
public:
    constexpr RingWriter(Recording& recording, TraceFile& file) noexcept
        : recording_(recording), file_(file) {}
    RingWriter(const RingWriter&) = delete;
    RingWriter& operator=(const RingWriter&) = delete;

    /// Puts one entry into the calling thread's ring; drops and counts it where there is no room.
    void record(TraceAction action, std::uint64_t source, const void* address, std::size_t bytes,
                std::size_t alignment) noexcept;
    /// Takes the calling thread's ring, which may allocate, in a C library that a pool serves.
    void prepare() noexcept;
    /// Gives the calling thread's ring to the next thread.
    void end_thread() noexcept;
    /// What a thread that takes a ring has called at its end. Set once, before any recording.
    void set_exit_handler(platform::ExitHandler handler) noexcept { exit_handler_ = handler; }

private:
    bool make_room(OwnRing& own) noexcept;
    bool has_room(OwnRing& own) noexcept;
    bool take_ring(OwnRing& own) noexcept;
    bool announce(OwnRing& own) noexcept;
    bool find_room(OwnRing& own) noexcept;
    bool is_read(OwnRing& own) noexcept;
    void write_stack(OwnRing& own) noexcept;
    std::uint64_t name_frame(std::uintptr_t address) noexcept;

    Recording& recording_;
    TraceFile& file_;
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
};

}  // namespace tensorpool::trace
