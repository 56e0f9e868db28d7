#pragma once

#include "simulation/schedule/scheduler.hpp"

namespace tensorpool::device {

// Relaxed: the value only has to be unique; it publishes no other data.
inline std::uint64_t next_capture_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// The work recorded while streams are captured, and its order. Each captured stream is a branch,
/// which is a timeline in the clocks of the capture.
class Capture {
public:
    struct Node {
        Work work;
        std::uint32_t branch = 0;
        VectorClock clock;  // of the nodes before this one and of itself, by branch
    };

    Capture(Stream& origin, std::uint64_t id, const Operation& begun) : id_(id), begun_(begun) {
        branches_.push_back({&origin, {}});
    }

    std::uint64_t id() const noexcept { return id_; }
    /// Whether the calling thread began the capture. Some calls are forbidden to that thread.
    bool by_this_thread() const noexcept { return thread_ == std::this_thread::get_id(); }
    bool began_in(const Stream& stream) const noexcept { return branches_[0].stream == &stream; }
    bool open() const noexcept { return open_; }
    const Operation& begun() const noexcept { return begun_; }

    void add(const Stream& stream, Work work) {
        VectorClock& clock = branches_[stream.branch].clock;
        clock.raise(stream.branch, clock[stream.branch] + 1);
        nodes_.push_back({std::move(work), stream.branch, clock});
    }
    const VectorClock& clock_of(const Stream& stream) const noexcept {
        return branches_[stream.branch].clock;
    }
    /// Orders later work of the stream after `clock`. The stream joins the capture as a new branch
    /// if it is not part of it yet.
    void order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                     const VectorClock& clock) {
        if (stream.capture == nullptr) {
            stream.capture = self;
            stream.branch = static_cast<std::uint32_t>(branches_.size());
            branches_.push_back({&stream, {}});
        }
        branches_[stream.branch].clock.join(clock);
    }
    /// Ends the capture and releases its streams. Returns false if the work of some branch was not
    /// joined to the origin stream.
    bool end() noexcept {
        bool joined = true;
        for (const Branch& branch : branches_) {
            joined = joined && branches_[0].clock.covers(branch.clock);
            branch.stream->capture = nullptr;
        }
        open_ = false;
        return joined;
    }

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
    void begin(Stream& stream) {
        stream.capture = std::make_shared<Capture>(stream, next_capture_id(),
                                                   watch_.operation("begin_capture", stream.name));
        stream.branch = 0;
        under_way_.push_back(stream.capture);
        count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
    }
    /// Ends the capture that began in the stream and returns its graph. If streams of the capture
    /// were not joined, the capture ends too, and the call is rejected.
    GraphHandle end(Stream& stream) {
        const auto capture = stream.capture;
        if (capture == nullptr || !capture->began_in(stream)) {
            device::refuse("no capture began in this stream");
        }
        std::erase(under_way_, capture);
        count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
        if (!capture->end()) refuse(*capture, "end_capture with streams not joined");
        auto made = std::make_shared<Graph>();
        made->captured_until = watch_.operations;
        made->timelines.resize(1);
        while (made->timelines.size() < capture->branches()) {
            made->timelines.push_back(timelines_.take(watch_.host));
        }
        made->device = stream.device;
        made->capture = capture;
        const auto handle = reinterpret_cast<GraphHandle>(made.get());
        graphs_.emplace(handle, std::move(made));
        return handle;
    }

    std::shared_ptr<Graph> graph(int device, GraphHandle handle) const {
        const auto found = graphs_.find(handle);
        if (found == graphs_.end() || found->second->device != device) {
            device::refuse("no such graph");
        }
        return found->second;
    }
    void destroy_graph(int device, GraphHandle handle) {
        const auto found = graph(device, handle);
        for (std::size_t branch = 1; branch < found->timelines.size(); ++branch) {
            timelines_.give(found->timelines[branch]);
        }
        graphs_.erase(handle);
    }

    /// Returns a capture that the calling thread began and not yet ended, or nullptr. The thread
    /// may not wait or allocate during it.
    const Capture* by_this_thread() const noexcept {
        for (const auto& capture : under_way_) {
            if (capture->by_this_thread()) return capture.get();
        }
        return nullptr;
    }
    /// Rejects the call if the stream is being captured.
    void check_free(const Stream& stream, const std::string& call) {
        if (stream.capture != nullptr) refuse(*stream.capture, call);
    }
    /// Reports a call that is forbidden in this capture, and rejects it.
    [[noreturn]] void refuse(const Capture& capture, const std::string& call) {
        watch_.log.add(HazardKind::illegal_in_capture, watch_.host_operation(call), capture.begun(),
                       0, 0);
        throw DeviceError(DeviceStatus::in_capture, call);
    }

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
    const VectorClock& clock_of(Stream& stream) {
        if (stream.host_version != watch_.host_version) {
            stream.clock.join(watch_.host);
            stream.host_version = watch_.host_version;
        }
        return stream.clock;
    }
    /// Returns the next operation of the stream, ordered after all that the host has waited for.
    Operation next_operation(Stream& stream, const std::string& label) {
        (void)clock_of(stream);
        const std::uint64_t tick = ++stream.timeline.tick;
        stream.clock.raise(stream.timeline.number, tick);
        return watch_.operation(label, stream.name, stream.timeline.number, tick);
    }
    /// Returns a mark that stands for all work submitted to the stream so far.
    std::shared_ptr<Mark> mark(const std::shared_ptr<Stream>& stream) {
        auto mark = std::make_shared<Mark>();
        mark->target = {stream, stream->given};
        mark->clock = clock_of(*stream);
        mark->time_ns = std::max(stream->time_ns, now_ns_);
        mark->capture = stream->capture;
        if (mark->capture != nullptr) mark->captured = mark->capture->clock_of(*stream);
        return mark;
    }
    void wait(SimulationLock& lock, const Mark& mark) {
        scheduler_.wait(lock, mark.target);
        pass(mark);
    }
    /// Returns whether the mark is reached. The first `late_answers` calls after that still return
    /// false.
    bool poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers = 0) {
        if (!scheduler_.poll(lock, mark.target)) return false;
        if (mark.late_answers < late_answers) {
            ++mark.late_answers;
            return false;
        }
        pass(mark);
        return true;
    }

    std::uint64_t now_ns() const noexcept { return now_ns_; }
    /// Advances the host's time by the duration of a call.
    void spend(std::uint64_t ns) noexcept { now_ns_ += ns; }

private:
    void pass(const Mark& mark) {
        watch_.learn(mark.clock);
        now_ns_ = std::max(now_ns_, mark.time_ns);
    }

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
                     const VectorClock& host)
        : scheduler_(scheduler),
          timelines_(timelines),
          host_(host),
          stream_counts_(static_cast<std::size_t>(devices)) {
        for (int device = 0; device < devices; ++device) default_streams_.push_back(make(device));
    }

    StreamHandle create(int device) {
        auto made = make(device);
        const auto handle = reinterpret_cast<StreamHandle>(made.get());
        streams_.emplace(handle, std::move(made));
        return handle;
    }
    /// REQUIRES: the handle is not that of a default stream.
    void destroy(StreamHandle handle) {
        const std::shared_ptr<Stream> ended = std::move(streams_.at(handle));
        streams_.erase(handle);
        timelines_.give(ended->timeline);
        scheduler_.retire(*ended);
    }
    /// Returns the stream, or nullptr for an unknown handle. A null handle means the device's
    /// default stream.
    std::shared_ptr<Stream> find(int device, StreamHandle handle) const {
        if (handle == nullptr) return default_streams_[static_cast<std::size_t>(device)];
        const auto found = streams_.find(handle);
        if (found == streams_.end() || found->second->device != device) return nullptr;
        return found->second;
    }
    std::shared_ptr<Stream> get(int device, StreamHandle handle) const {
        auto found = find(device, handle);
        if (found == nullptr) refuse("no such stream");
        return found;
    }

    EventHandle create_event(int device, bool timing) {
        auto made = std::make_unique<Event>(Event{device, timing, nullptr});
        const auto handle = reinterpret_cast<EventHandle>(made.get());
        events_.emplace(handle, std::move(made));
        return handle;
    }
    void destroy_event(int device, EventHandle handle) {
        (void)event(device, handle);
        events_.erase(handle);
    }
    /// Returns the event, which may belong to any device.
    Event& event(EventHandle handle) const {
        const auto found = events_.find(handle);
        if (found == events_.end()) refuse("no such event");
        return *found->second;
    }
    Event& event(int device, EventHandle handle) const {
        Event& found = event(handle);
        if (found.device != device) refuse("no such event");
        return found;
    }

private:
    std::shared_ptr<Stream> make(int device) {
        auto stream = std::make_shared<Stream>();
        stream->device = device;
        stream->name = {static_cast<std::uint16_t>(device),
                        stream_counts_[static_cast<std::size_t>(device)]++};
        stream->timeline = timelines_.take(host_);
        scheduler_.add(stream);
        return stream;
    }

    Scheduler& scheduler_;
    Timelines& timelines_;
    const VectorClock& host_;
    std::unordered_map<StreamHandle, std::shared_ptr<Stream>> streams_;
    std::unordered_map<EventHandle, std::unique_ptr<Event>> events_;
    std::vector<std::shared_ptr<Stream>> default_streams_;
    std::vector<std::uint32_t> stream_counts_;  // streams ever created, by device
};

}  // namespace tensorpool::device
