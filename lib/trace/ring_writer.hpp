#pragma once

#include <utility>

#include <tensorpool/export.hpp>

#include "base/random_distance.hpp"
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

inline constinit thread_local OwnRing own_ring TENSORPOOL_INITIAL_EXEC;

constexpr bool is_allocation(TraceAction action) noexcept {
    return action == TraceAction::allocate || action == TraceAction::arena_allocate ||
           action == TraceAction::scratch_allocate;
}

// A deeper stack loses its outermost frames.
inline constexpr std::size_t max_frames = 48;

// The reader counts as gone if a ring stays full and the reader shows no activity for this long.
inline constexpr std::uint64_t max_silence_ns = 10'000'000'000;

// A thread without a ring looks for one again after this many calls: another thread may have ended.
inline constexpr std::uint64_t calls_between_looks = 1024;

/// Writes calls into the ring of the thread that makes them: the fast path of a recording. A thread
/// takes a ring at its first recorded call and gives it to another when it ends.
class RingWriter {
public:
    constexpr RingWriter(Recording& recording, TraceFile& file) noexcept
        : recording_(recording), file_(file) {}

    /// Puts one entry into the calling thread's ring. If there is no room, drops and counts it.
    void record(TraceAction action, std::uint64_t source, const void* address, std::size_t bytes,
                std::size_t alignment) noexcept {
        OwnRing& own = own_ring;
        if (own.next == own.room_until || own.recording != recording_.number.load(relaxed))
            [[unlikely]] {
            if (!make_room(own)) return;
        }
        TraceEntry& entry = own.begin_entry();
        // A block can pass from the thread that frees it to the thread that takes it almost
        // immediately, so frees need an ordered counter. In the other direction the block waits in
        // a magazine. The ordering costs 10 ns, so only frees pay for it.
        entry.cycles = action == TraceAction::deallocate ? platform::ordered_cycle_counter()
                                                         : platform::cycle_counter();
        entry.address = reinterpret_cast<std::uintptr_t>(address);
        entry.bytes = bytes;
        entry.source = static_cast<std::uint32_t>(source);
        entry.action = action;
        entry.alignment_log2 = static_cast<std::uint8_t>(std::countr_zero(alignment));
        entry.reserved = 0;
        own.end_entry();
        if (is_allocation(action) && own.sampling.takes(bytes)) [[unlikely]]
            write_stack(own);
    }
    /// Takes a ring for the calling thread. Called ahead of time, since it may allocate in a C
    /// library whose malloc a pool serves.
    void prepare() noexcept { (void)make_room(own_ring); }
    /// Makes the calling thread's ring available to the next thread.
    void end_thread() noexcept {
        OwnRing& own = own_ring;
        if (own.entries != nullptr && own.recording == recording_.number.load(relaxed)) {
            recording_.rings.give_back(own.ring);
        }
        own = {};
    }
    /// Sets the handler that runs at the end of each thread that takes a ring. Set once, before any
    /// recording.
    void set_exit_handler(platform::ExitHandler handler) noexcept { exit_handler_ = handler; }

private:
    bool make_room(OwnRing& own) noexcept {
        const std::uint64_t recording = recording_.number.load(std::memory_order_acquire);
        if (own.recording != recording) own = {.recording = recording};
        if (own.entries == nullptr && !take_ring(own)) return false;
        if (has_room(own) && (own.is_announced || announce(own))) return true;
        own.head->dropped.store(own.head->dropped.load(relaxed) + 1, relaxed);
        return false;
    }
    bool has_room(OwnRing& own) noexcept { return own.next != own.room_until || find_room(own); }
    bool take_ring(OwnRing& own) noexcept {
        if (own.calls_until_look != 0) {
            --own.calls_until_look;
            return false;
        }
        // Set before the ring is taken, so that calls made from here (in a C library that
        // allocates) are not recorded.
        own.calls_until_look = calls_between_looks;
        const Rings::Taken taken = recording_.rings.take();
        if (taken.head == nullptr) {
            if (!std::exchange(own.is_left_out, true)) recording_.rings.count_left_out();
            return false;
        }
        // Without the exit handler, the ring stays this thread's after its end, which wastes a
        // ring.
        (void)platform::call_at_thread_exit(exit_handler_);
        own.ring = taken.ring;
        own.head = taken.head;
        own.next = own.room_until = own.head->written.load(relaxed);
        own.sampling.begin(recording_.rings.header().process.stack_interval,
                           platform::current_thread_id());
        own.entries = taken.entries;
        return true;
    }
    // REQUIRES: there is room for one entry.
    bool announce(OwnRing& own) noexcept {
        const std::uint64_t thread = platform::current_thread_id();
        own.is_announced = true;
        own.head->thread.store(thread, relaxed);
        own.write({.cycles = platform::cycle_counter(),
                   .address = thread,
                   .bytes = 0,
                   .source = 0,
                   .action = TraceAction::thread,
                   .alignment_log2 = 0,
                   .reserved = 0});
        return has_room(own);
    }
    // The tail that the reader stores is trusted only if it is a possible value.
    bool find_room(OwnRing& own) noexcept {
        if (recording_.target_now() == Recording::Target::file && !file_.write_out(own.ring))
            return false;
        const Control* const control = recording_.control.load(relaxed);
        const std::uint64_t tail = recording_.target_now() == Recording::Target::file
                                       ? own.next
                                       : control->tails[own.ring].load(std::memory_order_acquire);
        own.room_until = trace::room_until(own.next, tail, ring_entries);
        if (own.room_until != own.next) {
            own.full_since_ns = 0;
            return true;
        }
        if (!is_read(own)) give_up_recording();
        return false;
    }
    bool is_read(OwnRing& own) noexcept {
        if (own.head->dropped.load(relaxed) % ring_entries != 0) return true;
        const std::uint64_t beats = recording_.control.load(relaxed)->beats.load(relaxed);
        const std::uint64_t now = platform::monotonic_clock_ns();
        const bool went_back = now < own.full_since_ns;
        if (own.full_since_ns == 0 || beats != own.beats_seen || went_back) {
            own.full_since_ns = now;
            own.beats_seen = beats;
        }
        return now - own.full_since_ns < max_silence_ns;
    }
    // Writes as many entries as the stack needs, or none: half a stack would look like another
    // stack.
    void write_stack(OwnRing& own) noexcept {
        platform::ProgramFrame frames[max_frames];
        platform::StackBuffers buffers;
        const std::size_t count = platform::capture_program_stack(frames, max_frames, buffers);
        const std::size_t entries = (count + 2) / 3;
        if (own.room_until - own.next < entries && !find_room(own)) return;
        if (own.room_until - own.next < entries) return;
        for (std::size_t i = 0; i < count; i += 3) {
            TraceFrames some{};
            some.action = TraceAction::frames;
            some.count = static_cast<std::uint8_t>(std::min<std::size_t>(3, count - i));
            some.last = i + 3 >= count ? 1 : 0;
            for (std::size_t k = 0; k < some.count; ++k) {
                some.frames[k] = platform::word_of<48, sizeof(TraceModule::path) - 1>(
                    frames[i + k],
                    [&](std::string_view path) { return recording_.rings.number_of_module(path); });
            }
            own.write(std::bit_cast<TraceEntry>(some));
        }
    }

    Recording& recording_;
    TraceFile& file_;
    platform::ExitHandler exit_handler_ = platform::no_exit_handler;
};

}  // namespace tensorpool::trace
