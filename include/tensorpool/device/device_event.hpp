#pragma once

/// @file
/// A handle that owns an event: a point in a stream's work.

#include <memory>
#include <optional>

#include <tensorpool/device/backend.hpp>

namespace tensorpool {

namespace device {
class RuntimeCore;
}
class Runtime;

/// Owns one event of a device.
///
/// Move-only. Any thread may query it or wait for it; one thread at a time may record it. It may
/// outlive its runtime. All functions throw DeviceError if the device fails.
class TENSORPOOL_API DeviceEvent {
public:
    /// Makes an event of the current device with these properties.
    explicit DeviceEvent(EventFlags flags = EventFlags::none);
    /// Makes an event of the runtime's device with these properties.
    explicit DeviceEvent(Runtime& runtime, EventFlags flags = EventFlags::none);
    /// Destroys the event.
    ~DeviceEvent();
    /// Takes the event of `other`, which then has none.
    DeviceEvent(DeviceEvent&& other) noexcept;
    /// Destroys the present event and takes the event of `other`, which then has none.
    DeviceEvent& operator=(DeviceEvent&& other) noexcept;
    DeviceEvent(const DeviceEvent&) = delete;
    DeviceEvent& operator=(const DeviceEvent&) = delete;

    /// Returns the backend's handle; nullptr for a moved-from object, of which no other function
    /// may be called.
    EventHandle handle() const noexcept { return event_; }
    /// Returns the event's device.
    Device device() const noexcept;
    /// Returns the event's properties.
    EventFlags flags() const noexcept { return flags_; }

    /// Makes the event stand for all work submitted so far to a stream of its device, by default
    /// the current stream.
    void record(std::optional<StreamHandle> stream = {});
    /// Returns whether the work that the event stands for is done; true before it was ever
    /// recorded.
    bool query() const;
    /// Waits until the work that the event stands for is done.
    void synchronize() const;
    /// Makes work submitted from now on to a stream of its device wait for the work that the event
    /// stands for now. DeviceStream::wait accepts events of other devices too.
    void make_wait(StreamHandle stream) const;
    /// Returns the milliseconds from `start`, an event of the same backend, to this one. Throws
    /// DeviceError unless both have timing, were recorded and are reached.
    float elapsed_ms_since(const DeviceEvent& start) const;

private:
    friend class DeviceStream;

    std::shared_ptr<device::RuntimeCore> core_;
    EventHandle event_ = nullptr;
    EventFlags flags_ = EventFlags::none;
};

}  // namespace tensorpool
