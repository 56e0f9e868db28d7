#pragma once

/// A process of its own that records the one that made it, and does what that asks for.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include <tensorpool/trace_format.hpp>

#include "trace/ring_layout.hpp"

namespace perf {

/// The least that a ring of entries is, in memory that both processes see.
struct FloorRing {
    alignas(64) std::atomic<std::uint64_t> written = 0;
    alignas(64) std::array<tensorpool::TraceEntry, tensorpool::trace::ring_entries> entries = {};
};

/// Throws std::runtime_error.
FloorRing& map_floor_ring();

/// The recording process, on the second core, as the recorded one has it. Each call waits for its
/// answer and throws std::runtime_error where that is not the expected one.
class TraceRecorder {
public:
    /// To be made before any pool: the other process has none then.
    explicit TraceRecorder(const FloorRing& floor);
    ~TraceRecorder();
    TraceRecorder(const TraceRecorder&) = delete;
    TraceRecorder& operator=(const TraceRecorder&) = delete;

    /// Asks for a recording, and that it end. The process sees either in its next slow path.
    void ask() { request(Request::ask); }
    void stop() { request(Request::stop); }
    /// After that slow path: takes out what is there, and sees that recording began, or ended.
    void expect_begun() { request(Request::take); }
    void expect_ended() { request(Request::leave); }

    /// Takes out what one window wrote. All of it: one that dropped some was quicker.
    void take(std::uint64_t expected);
    /// Reads the floor's ring as `take` reads the recorded one.
    void take_floor() { request(Request::take_floor); }

    /// Of all windows.
    std::uint64_t entries() const { return entries_; }
    std::uint64_t dropped() const { return dropped_; }

private:
    class OtherProcess;
    enum class Request : std::uint8_t { ask, take, take_floor, stop, leave };
    struct Answer {
        bool done;
        std::uint64_t entries;
        std::uint64_t dropped;  // of the recording so far
    };
    Answer request(Request request);

    int channel_ = -1;
    pid_t child_ = -1;
    std::uint64_t entries_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace perf
