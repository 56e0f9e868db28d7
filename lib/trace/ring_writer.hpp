#pragma once

#include "base/random_distance.hpp"
#include "platform/cycle_counter.hpp"
#include "platform/stacks/program_stack.hpp"
#include "trace/trace_file.hpp"

namespace tensorpool::trace {

/// Decides which allocations of a recording have their stacks recorded: one every `interval` bytes
/// on average.
class SampleDistance {
public:
    /// Starts sampling for a thread. An interval of 0 samples nothing; `seed` should differ between
    /// threads.
    void begin(std::uint64_t interval, std::uint64_t seed) noexcept {
        interval_ = interval;
        distance_ = base::RandomDistance(seed);
        left_ = next();
    }
    /// Returns true if an allocation of `bytes` bytes is to be sampled.
    bool takes(std::uint64_t bytes) noexcept {
        left_ -= static_cast<std::int64_t>(bytes);
        if (left_ >= 0) [[likely]]
            return false;
        left_ = next();
        return interval_ != 0;
    }

private:
    static constexpr std::int64_t never = INT64_MAX;

    std::int64_t next() noexcept {
        return interval_ == 0 ? never : distance_.next(static_cast<double>(interval_));
    }

    std::uint64_t interval_ = 0;
    base::RandomDistance distance_;
    std::int64_t left_ = never;
};

/// The calling thread's ring, as its writer sees it. Zeroed: there is none yet, which looks like a
/// full ring.
struct OwnRing {
    TraceEntry* entries = nullptr;
    RingHead* head = nullptr;
    std::uint64_t next = 0;        // the number of the next entry
    std::uint64_t room_until = 0;  // next <= room_until
    std::size_t ring = ring_count;
    std::uint64_t recording = 0;  // the recording for which it was taken
    SampleDistance sampling{};
    bool is_announced = false;           // the ring names its thread
    bool is_left_out = false;            // the thread was counted as one without a ring
    std::uint64_t calls_until_look = 0;  // until the next attempt to take a ring
    // While the ring is full: since when, and the reader's `beats` at that moment.
    std::uint64_t full_since_ns = 0;
    std::uint64_t beats_seen = 0;

    /// REQUIRES: next < room_until.
    TraceEntry& begin_entry() noexcept { return entries[next % ring_entries]; }
    void end_entry() noexcept {
        ++next;
        // Pairs with the reader's acquire: every entry that it counts has been written.
        head->written.store(next, std::memory_order_release);
    }
    void write(const TraceEntry& entry) noexcept {
        begin_entry() = entry;
        end_entry();
    }
};

/// Writes calls into the ring of the thread that makes them: the fast path of a recording. A thread
/// takes a ring at its first recorded call and gives it to another when it ends.
class RingWriter {
public:
    constexpr RingWriter(Recording& recording, TraceFile& file) noexcept
        : recording_(recording), file_(file) {}

    /// Puts one entry into the calling thread's ring. If there is no room, drops and counts it.
    void record(TraceAction action, std::uint64_t source, const void* address, std::size_t bytes,
                std::size_t alignment) noexcept;
    /// Takes a ring for the calling thread. This may allocate in a C library whose malloc a pool
    /// serves.
    void prepare() noexcept;
    /// Makes the calling thread's ring available to the next thread.
    void end_thread() noexcept;
    /// Sets the handler that runs at the end of each thread that takes a ring. Set once, before any
    /// recording.
    void set_exit_handler(platform::ExitHandler handler) noexcept { exit_handler_ = handler; }

private:
    bool make_room(OwnRing& own) noexcept;
    bool has_room(OwnRing& own) noexcept { return own.next != own.room_until || find_room(own); }
    bool take_ring(OwnRing& own) noexcept;
    bool announce(OwnRing& own) noexcept;
    bool find_room(OwnRing& own) noexcept;
    bool is_read(OwnRing& own) noexcept;
    void write_stack(OwnRing& own) noexcept;

    Recording& recording_;
    TraceFile& file_;
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
};

}  // namespace tensorpool::trace
