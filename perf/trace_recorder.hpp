#pragma once

/// A process that records the process that made it, at the latter's requests.

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>

#include <tensorpool/trace_format.hpp>

#include "trace/ring_layout.hpp"

namespace perf {

/// The simplest ring of entries, in memory that both processes share.
struct FloorRing {
    alignas(64) std::atomic<std::uint64_t> written = 0;
    alignas(64) std::array<tensorpool::TraceEntry, tensorpool::trace::ring_entries> entries = {};
};

/// Maps a ring that child processes share. Throws std::runtime_error on failure.
FloorRing& map_floor_ring();

/// The recorded process's handle for the recording process, which runs on the second core. Each
/// call waits for the answer, and throws std::runtime_error if it is not the expected one.
class TraceRecorder {
public:
    /// Starts the recording process by `fork`. Construct it before any pool, so that the child has
    /// none.
    explicit TraceRecorder(const FloorRing& floor);
    ~TraceRecorder();
    TraceRecorder(const TraceRecorder&) = delete;
    TraceRecorder& operator=(const TraceRecorder&) = delete;

    /// Requests the start or the end of a recording. This process notices it in its next slow path.
    void start() { request(Request::start); }
    void stop() { request(Request::stop); }
    /// Call these after that slow path: they take the entries out, and check that recording began,
    /// or ended.
    void expect_begun() { request(Request::take); }
    void expect_ended() { request(Request::leave); }

    /// Takes out the entries of one window. Throws if there are not `expected` of them or if any
    /// was dropped, because a window that drops entries is faster.
    void take(std::uint64_t expected);
    /// Reads the floor's ring as `take` reads the recorded one.
    void take_floor() { request(Request::take_floor); }

    /// Entries of all windows: those that were taken out, and those that were dropped.
    std::uint64_t entries() const { return entries_; }
    std::uint64_t dropped() const { return dropped_; }

private:
    class OtherProcess;
    enum class Request : std::uint8_t { start, take, take_floor, stop, leave };
    struct Answer {
        bool done;
        std::uint64_t entries;
        std::uint64_t dropped;  // in the recording so far
    };
    Answer request(Request request);

    int channel_ = -1;
    pid_t child_ = -1;
    std::uint64_t entries_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace perf
