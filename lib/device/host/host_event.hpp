#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include <tensorpool/device/backend.hpp>

#include "device/host/host_capture.hpp"
#include "device/host/host_stream.hpp"

namespace tensorpool::device {

/// A point in a stream's work: what an event stands for. Streams never go, so it stays good.
struct HostMark {
    HostStream* stream = nullptr;  // nullptr: nothing was recorded, or in a capture
    std::uint64_t number = 0;
    std::shared_ptr<const HostCapturePoint> captured;  // nullptr: in none

    bool is_reached() const noexcept { return stream == nullptr || stream->reached(number); }
    void wait() const noexcept {
        if (stream != nullptr) stream->wait_until(number);
    }
};

/// An event: the mark of the last record, and with timing the time at which it was reached. Nothing
/// goes into the stream's queue without timing. Any thread.
class HostEvent {
public:
    /// Before it has a handle, and after.
    void begin_life(EventTiming timing) noexcept;
    void end_life() noexcept;

    /// Throws what `HostStream::give` throws; then it stands for what it stood for.
    void record(HostStream& stream);
    void record(std::shared_ptr<const HostCapturePoint> point) noexcept;
    HostMark mark() const noexcept;

    struct Time {
        HostMark mark;
        EventTiming timing;
        bool is_reached;   // as of when the rest was read
        std::uint64_t ns;  // where it is reached
    };
    Time time() const noexcept;

private:
    /// Unless it was recorded anew since, or ended.
    void stamp(std::uint64_t record) noexcept;

    mutable std::mutex mutex_;  // taken before a stream's
    EventTiming timing_ = EventTiming::off;
    HostMark mark_;
    std::uint64_t records_ = 0;  // of all lives: tells a late stamp from one that is wanted
    std::uint64_t time_ns_ = 0;  // of the last record, when it is reached
};

}  // namespace tensorpool::device
