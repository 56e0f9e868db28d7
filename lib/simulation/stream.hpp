#pragma once

#include <deque>
#include <memory>

#include <tensorpool/device/simulated_kernel.hpp>

#include "simulation/hazards/vector_clock.hpp"

namespace tensorpool::device {

class Capture;
struct Stream;

/// Work submitted to a stream.
struct Work {
    std::string label;
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    std::function<void()> run;   // called outside the lock
    std::function<void()> then;  // called under the lock, after `run`
    std::uint64_t duration_ns = 0;
    bool opaque = false;  // may touch any memory
};

/// The memory that a piece of work touches; the search for orders uses it to skip equivalent ones.
struct Footprint {
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    bool opaque = false;  // may touch any memory
};

/// A position that a stream must reach.
struct Target {
    std::shared_ptr<Stream> stream;
    std::uint64_t position = 0;

    bool reached() const noexcept;
};

/// An entry in a stream's queue: work, or a wait until the stream of `after` reaches a position.
struct QueueEntry {
    std::function<void()> run;   // called outside the lock
    std::function<void()> then;  // called under the lock, after `run`
    Target after;
    std::shared_ptr<const Footprint> footprint;

    bool is_wait() const noexcept { return after.stream != nullptr; }
};

/// One stream. The simulation's lock guards all of it.
struct Stream {
    int device = 0;
    StreamName name;
    Timeline timeline;
    VectorClock clock;               // everything ordered before the next work
    std::uint64_t host_version = 0;  // version of the host's clock merged into `clock`
    std::uint64_t time_ns = 0;

    std::deque<QueueEntry> queue;
    std::uint64_t given = 0;
    std::uint64_t done = 0;   // entries submitted and done: positions
    std::uint64_t polls = 0;  // queries answered not_ready since the last progress
    bool busy = false;        // a thread is running the first entry
    bool destroyed = false;   // to be removed when the queue is empty

    std::shared_ptr<Capture> capture;  // nullptr: work is executed, not captured
    std::uint32_t branch = 0;          // in that capture

    bool idle() const noexcept { return queue.empty(); }
    /// Whether the first entry can run now.
    bool runnable() const noexcept {
        return !busy && !queue.empty() && queue.front().after.reached();
    }
};

inline bool Target::reached() const noexcept {
    return stream == nullptr || stream->done >= position;
}

/// The point in a stream's work that an event stands for.
struct Mark {
    Target target;
    VectorClock clock;
    std::uint64_t time_ns = 0;
    std::uint64_t late_answers = 0;  // not_ready answers given after the target was reached
    std::shared_ptr<Capture> capture;
    VectorClock captured;  // clock in the capture, by branch
};

struct Event {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;  // nullptr: never recorded
};

}  // namespace tensorpool::device
