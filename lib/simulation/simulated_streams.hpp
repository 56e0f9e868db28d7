#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "simulation/schedule/scheduler.hpp"
#include "simulation/schedule/timelines.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// The streams and events that callers know by handles, and the default stream of each device.
/// Unknown handles are refused with DeviceError.
class SimulatedStreams {
public:
    /// `host` is the host's clock, by which numbers of ended timelines are used again.
    SimulatedStreams(int devices, Scheduler& scheduler, Timelines& timelines,
                     const VectorClock& host);

    StreamHandle create(int device);
    /// REQUIRES: the handle is not that of a default stream.
    void destroy(StreamHandle handle);
    /// Returns nullptr for an unknown handle; the null handle is the device's default stream.
    std::shared_ptr<Stream> find(int device, StreamHandle handle) const;
    std::shared_ptr<Stream> get(int device, StreamHandle handle) const;

    EventHandle create_event(int device, EventTiming timing);
    void destroy_event(int device, EventHandle handle);
    /// Returns the event, which may be one of any device.
    Event& event(EventHandle handle) const;
    Event& event(int device, EventHandle handle) const;

private:
    std::shared_ptr<Stream> make(int device);

    Scheduler& scheduler_;
    Timelines& timelines_;
    const VectorClock& host_;
    std::unordered_map<StreamHandle, std::shared_ptr<Stream>> streams_;
    std::unordered_map<EventHandle, std::unique_ptr<Event>> events_;
    std::vector<std::shared_ptr<Stream>> default_streams_;
    std::vector<std::uint32_t> stream_counts_;  // ever made, of each device
};

}  // namespace tensorpool::device
