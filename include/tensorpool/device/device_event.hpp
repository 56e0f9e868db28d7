#pragma once

/// @file
/// A point in a stream's work.

#include <memory>

#include <tensorpool/device/backend.hpp>
#include <tensorpool/device/device.hpp>
#include <tensorpool/export.hpp>

namespace tensorpool {

namespace device {
class RuntimeCore;
}
class Runtime;

/// Owns one event of a device. Move-only; any thread may query it or wait for it, one at a time may
/// record it. May outlive its runtime. All throw DeviceError where the device fails.
class TENSORPOOL_API DeviceEvent {
public:
    /// Of the current device.
    explicit DeviceEvent(EventTiming timing = EventTiming::off);
    explicit DeviceEvent(Runtime& runtime, EventTiming timing = EventTiming::off);
    ~DeviceEvent();
    DeviceEvent(DeviceEvent&& other) noexcept;
    DeviceEvent& operator=(DeviceEvent&& other) noexcept;
    DeviceEvent(const DeviceEvent&) = delete;
    DeviceEvent& operator=(const DeviceEvent&) = delete;

    /// nullptr after it was moved from: then nothing else may be called.
    EventHandle handle() const noexcept { return event_; }
    Device device() const noexcept;
    EventTiming timing() const noexcept { return timing_; }

    /// From now on it stands for all that was given to a stream of its device so far.
    void record(StreamHandle stream = nullptr);
    /// Whether what it stands for is done; true before it was ever recorded.
    bool query() const;
    /// Waits until it is.
    void synchronize() const;
    /// Work given from now on to a stream of its device waits for what it stands for now.
    /// DeviceStream::wait takes events of other devices too.
    void make_wait(StreamHandle stream) const;
    /// Milliseconds from `start`, an event of the same backend, to this one. Both were made with
    /// timing, recorded and reached; it throws DeviceError otherwise.
    float elapsed_ms_since(const DeviceEvent& start) const;

private:
    friend class DeviceStream;

    std::shared_ptr<device::RuntimeCore> core_;
    EventHandle event_ = nullptr;
    EventTiming timing_ = EventTiming::off;
};

}  // namespace tensorpool
