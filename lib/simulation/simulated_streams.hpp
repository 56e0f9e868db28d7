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

/// The streams and events that callers refer to by handle, and the default stream of each device.
/// Unknown handles are rejected with DeviceError.
class SimulatedStreams {
public:
    /// `host` is the host's clock; it decides when numbers of ended timelines may be reused.
    SimulatedStreams(int devices, Scheduler& scheduler, Timelines& timelines,
                     const VectorClock& host);

    StreamHandle create(int device);
    /// REQUIRES: the handle is not that of a default stream.
    void destroy(StreamHandle handle);
    /// Returns the stream, or nullptr for an unknown handle. A null handle means the device's
    /// default stream.
    std::shared_ptr<Stream> find(int device, StreamHandle handle) const;
    std::shared_ptr<Stream> get(int device, StreamHandle handle) const;

    EventHandle create_event(int device, bool timing);
    void destroy_event(int device, EventHandle handle);
    /// Returns the event, which may belong to any device.
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
    std::vector<std::uint32_t> stream_counts_;  // streams ever created, by device
};

}  // namespace tensorpool::device
