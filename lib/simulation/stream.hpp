#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tensorpool/device/simulated_kernel.hpp>

#include "simulation/hazards/vector_clock.hpp"
#include "simulation/operation.hpp"
#include "simulation/schedule/timelines.hpp"

namespace tensorpool::device {

class Capture;
struct Stream;

/// Work that is given to a stream.
struct Work {
    std::string label;
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    std::function<void()> run;   // outside of the lock
    std::function<void()> then;  // under it, after that
    std::uint64_t duration_ns = 0;
    bool opaque = false;  // it may touch anything
};

/// What a piece of work touches, for the search that leaves out orders that are the same.
struct Footprint {
    std::vector<MemoryRange> reads;
    std::vector<MemoryRange> writes;
    bool opaque = false;  // it may touch anything
};

/// How far a stream has to get.
struct Target {
    std::shared_ptr<Stream> stream;
    std::uint64_t position = 0;

    bool reached() const noexcept;
};

/// What waits in a stream: work, or (where `after` has a stream) a place that others must reach.
struct QueueEntry {
    std::function<void()> run;   // outside of the lock
    std::function<void()> then;  // under the lock, after that
    Target after;
    std::shared_ptr<const Footprint> footprint;

    bool is_wait() const noexcept { return after.stream != nullptr; }
};

/// All of it is guarded by the simulation's lock.
struct Stream {
    int device = 0;
    StreamName name;
    Timeline timeline;
    VectorClock clock;               // what is ordered before the work that is given next
    std::uint64_t host_version = 0;  // of the host's clock that went into it
    std::uint64_t time_ns = 0;

    std::deque<QueueEntry> queue;
    std::uint64_t given = 0;
    std::uint64_t done = 0;   // entries given and done: positions
    std::uint64_t polls = 0;  // answered with not_ready since it got on
    bool busy = false;        // a thread does its first entry
    bool destroyed = false;   // goes when its queue is empty

    std::shared_ptr<Capture> capture;  // nullptr: its work is done
    std::uint32_t branch = 0;          // of that capture

    bool idle() const noexcept { return queue.empty(); }
    /// Its first entry can be done now.
    bool runnable() const noexcept {
        return !busy && !queue.empty() && queue.front().after.reached();
    }
};

inline bool Target::reached() const noexcept {
    return stream == nullptr || stream->done >= position;
}

/// What an event stands for.
struct Mark {
    Target target;
    VectorClock clock;
    std::uint64_t time_ns = 0;
    std::uint64_t late_answers = 0;  // not_ready that were given after it was reached
    std::shared_ptr<Capture> capture;
    VectorClock captured;  // in branches of the capture
};

struct Event {
    int device = 0;
    bool timing = false;
    std::shared_ptr<Mark> mark;  // nullptr: never recorded
};

}  // namespace tensorpool::device
