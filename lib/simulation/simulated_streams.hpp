#pragma once

#include "simulation/hazards/watch.hpp"
#include "simulation/schedule/scheduler.hpp"

namespace tensorpool::device {

/// The work recorded while streams are captured, and its order. Each captured stream is a branch,
/// which is a timeline in the clocks of the capture.
class Capture {
public:
    struct Node {
        Work work;
        std::uint32_t branch = 0;
        VectorClock clock;  // of the nodes before this one and of itself, by branch
    };

    Capture(Stream& origin, std::uint64_t id, const Operation& begun);

    std::uint64_t id() const noexcept { return id_; }
    /// Whether the calling thread began the capture. Some calls are forbidden to that thread.
    bool by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool began_in(const Stream& stream) const noexcept { return branches_[0].stream == &stream; }
    bool open() const noexcept { return open_; }
    const Operation& begun() const noexcept { return begun_; }

    void add(const Stream& stream, Work work);
    const VectorClock& clock_of(const Stream& stream) const noexcept {
        return branches_[stream.branch].clock;
    }
    /// Orders later work of the stream after `clock`. The stream joins the capture as a new branch
    /// if it is not part of it yet.
    void order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                     const VectorClock& clock);
    /// Ends the capture and releases its streams. Returns false if the work of some branch was not
    /// joined to the origin stream.
    bool end() noexcept;

    const std::vector<Node>& nodes() const noexcept { return nodes_; }
    /// The clock that covers all nodes, once the branches are joined.
    const VectorClock& last_clock() const noexcept { return branches_[0].clock; }
    std::size_t branches() const noexcept { return branches_.size(); }

private:
    struct Branch {
        Stream* stream = nullptr;
        VectorClock clock;
    };

    std::uint64_t id_;
    Operation begun_;
    std::thread::id thread_ = std::this_thread::get_id();
    bool open_ = true;
    std::vector<Branch> branches_;
    std::vector<Node> nodes_;
};

/// Captured work that can be launched into streams.
struct Graph {
    int device = 0;
    std::shared_ptr<const Capture> capture;
    std::uint64_t captured_until = 0;  // number of the capture's last operation
    std::vector<Timeline> timelines;   // one for each branch; the first is set at each launch
    std::shared_ptr<const Mark> last;  // end of the latest launch
};

/// The captures in progress and the graphs made from finished ones. A call that is forbidden during
/// capture is reported as a hazard and rejected with DeviceError.
class SimulatedCaptures {
public:
    SimulatedCaptures(Watch& watch, Timelines& timelines) : watch_(watch), timelines_(timelines) {}

    const std::atomic<unsigned>& count() const noexcept { return count_; }
    void begin(Stream& stream);
    /// Ends the capture that began in the stream and returns its graph. If streams of the capture
    /// were not joined, the capture ends too, and the call is rejected.
    GraphHandle end(Stream& stream);

    std::shared_ptr<Graph> graph(int device, GraphHandle handle) const;
    void destroy_graph(int device, GraphHandle handle);

    /// Returns a capture that the calling thread began and not yet ended, or nullptr. The thread
    /// may not wait or allocate during it.
    const Capture* by_this_thread() const noexcept;
    /// Rejects the call if the stream is being captured.
    void check_free(const Stream& stream, const std::string& call);
    /// Reports a call that is forbidden in this capture, and rejects it.
    [[noreturn]] void refuse(const Capture& capture, const std::string& call);

private:
    Watch& watch_;
    Timelines& timelines_;
    std::vector<std::shared_ptr<Capture>> under_way_;
    std::atomic<unsigned> count_ = 0;  // of the captures under way
    std::unordered_map<GraphHandle, std::shared_ptr<Graph>> graphs_;
};

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
