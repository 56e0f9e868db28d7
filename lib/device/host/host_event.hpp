#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include <tensorpool/device/backend.hpp>

#include "device/host/host_capture.hpp"
#include "device/host/host_stream.hpp"

namespace tensorpool::device {

/// The point in a stream's work that an event stands for. Valid for ever, as streams are kept.
struct HostMark {
    HostStream* stream = nullptr;  // nullptr: nothing was recorded, or in a capture only
    std::uint64_t number = 0;
    std::shared_ptr<const HostCapturePoint> captured;  // nullptr: not recorded in a capture

    bool is_reached() const noexcept { return stream == nullptr || stream->reached(number); }
    void wait() const noexcept {
        if (stream != nullptr) stream->wait_until(number);
    }
};

/// An event: the mark of its last record and, with timing, the time at which the mark was reached.
/// Without timing, recording adds no work to the stream's queue. Any thread.
class HostEvent {
public:
    /// Called before the event gets a handle, and after the handle ended.
    void begin_lifetime(bool has_timing) noexcept;
    void end_lifetime() noexcept;

    /// Throws what `HostStream::give` throws, and then leaves the event unchanged.
    void record(HostStream& stream);
    void record(std::shared_ptr<const HostCapturePoint> point) noexcept;
    HostMark mark() const noexcept;

    struct Time {
        HostMark mark;
        bool has_timing;
        bool is_reached;   // at the time of the call
        std::uint64_t ns;  // valid if reached
    };
    Time time() const noexcept;

private:
    /// Sets the time, unless the event was recorded again since or has ended.
    void stamp(std::uint64_t record) noexcept;

    mutable std::mutex mutex_;  // taken before a stream's
    bool has_timing_ = false;
    HostMark mark_;
    std::uint64_t records_ = 0;  // never reset: identifies stamps that come too late
    std::uint64_t time_ns_ = 0;  // time at which the last record was reached
};

}  // namespace tensorpool::device
