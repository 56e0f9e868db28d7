#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include <tensorpool/device/backend.hpp>

#include "simulation/hazards/vector_clock.hpp"
#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/scheduler.hpp"
#include "simulation/stream.hpp"

namespace tensorpool::device {

/// The order between streams and the host, in vector clocks, and the simulated time of the host. A
/// stream's next work is ordered after everything that the host has waited for. By waiting for a
/// mark, the host takes over the mark's clock.
class Ordering {
public:
    Ordering(Watch& watch, Scheduler& scheduler) : watch_(watch), scheduler_(scheduler) {}

    /// Returns the clock of everything that the stream's next work is ordered after.
    const VectorClock& clock_of(Stream& stream);
    /// Returns the next operation of the stream, ordered after all that the host has waited for.
    Operation next_operation(Stream& stream, const std::string& label);
    /// Returns a mark that stands for all work submitted to the stream so far.
    std::shared_ptr<Mark> mark(const std::shared_ptr<Stream>& stream);
    void wait(SimulationLock& lock, const Mark& mark);
    /// Returns whether the mark is reached. The first `late_answers` calls after that still return
    /// false.
    bool poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers = 0);

    std::uint64_t now_ns() const noexcept { return now_ns_; }
    /// Advances the host's time by the duration of a call.
    void spend(std::uint64_t ns) noexcept { now_ns_ += ns; }

private:
    void pass(const Mark& mark);

    Watch& watch_;
    Scheduler& scheduler_;
    std::uint64_t now_ns_ = 0;
};

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
