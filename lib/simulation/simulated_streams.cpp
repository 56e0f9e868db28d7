#include "simulation/simulated_streams.hpp"

#include "device/call_errors.hpp"

namespace tensorpool::device {

SimulatedStreams::SimulatedStreams(int devices, Scheduler& scheduler, Timelines& timelines,
                                   const VectorClock& host)
    : scheduler_(scheduler),
      timelines_(timelines),
      host_(host),
      stream_counts_(static_cast<std::size_t>(devices)) {
    for (int device = 0; device < devices; ++device) default_streams_.push_back(make(device));
}

std::shared_ptr<Stream> SimulatedStreams::make(int device) {
    auto stream = std::make_shared<Stream>();
    stream->device = device;
    stream->name = {static_cast<std::uint16_t>(device),
                    stream_counts_[static_cast<std::size_t>(device)]++};
    stream->timeline = timelines_.take(host_);
    scheduler_.add(stream);
    return stream;
}

StreamHandle SimulatedStreams::create(int device) {
    auto made = make(device);
    const auto handle = reinterpret_cast<StreamHandle>(made.get());
    streams_.emplace(handle, std::move(made));
    return handle;
}

void SimulatedStreams::destroy(StreamHandle handle) {
    const std::shared_ptr<Stream> ended = std::move(streams_.at(handle));
    streams_.erase(handle);
    timelines_.give(ended->timeline);
    scheduler_.retire(*ended);
}

std::shared_ptr<Stream> SimulatedStreams::find(int device, StreamHandle handle) const {
    if (handle == nullptr) return default_streams_[static_cast<std::size_t>(device)];
    const auto found = streams_.find(handle);
    if (found == streams_.end() || found->second->device != device) return nullptr;
    return found->second;
}

std::shared_ptr<Stream> SimulatedStreams::get(int device, StreamHandle handle) const {
    auto found = find(device, handle);
    if (found == nullptr) refuse("no such stream");
    return found;
}

EventHandle SimulatedStreams::create_event(int device, bool timing) {
    auto made = std::make_unique<Event>(Event{device, timing, nullptr});
    const auto handle = reinterpret_cast<EventHandle>(made.get());
    events_.emplace(handle, std::move(made));
    return handle;
}

void SimulatedStreams::destroy_event(int device, EventHandle handle) {
    (void)event(device, handle);
    events_.erase(handle);
}

Event& SimulatedStreams::event(EventHandle handle) const {
    const auto found = events_.find(handle);
    if (found == events_.end()) refuse("no such event");
    return *found->second;
}

Event& SimulatedStreams::event(int device, EventHandle handle) const {
    Event& found = event(handle);
    if (found.device != device) refuse("no such event");
    return found;
}

const VectorClock& Ordering::clock_of(Stream& stream) {
    if (stream.host_version != watch_.host_version) {
        stream.clock.join(watch_.host);
        stream.host_version = watch_.host_version;
    }
    return stream.clock;
}

Operation Ordering::next_operation(Stream& stream, const std::string& label) {
    (void)clock_of(stream);
    const std::uint64_t tick = ++stream.timeline.tick;
    stream.clock.raise(stream.timeline.number, tick);
    return watch_.operation(label, stream.name, stream.timeline.number, tick);
}

std::shared_ptr<Mark> Ordering::mark(const std::shared_ptr<Stream>& stream) {
    auto mark = std::make_shared<Mark>();
    mark->target = {stream, stream->given};
    mark->clock = clock_of(*stream);
    mark->time_ns = std::max(stream->time_ns, now_ns_);
    mark->capture = stream->capture;
    if (mark->capture != nullptr) mark->captured = mark->capture->clock_of(*stream);
    return mark;
}

void Ordering::wait(SimulationLock& lock, const Mark& mark) {
    scheduler_.wait(lock, mark.target);
    pass(mark);
}

bool Ordering::poll(SimulationLock& lock, Mark& mark, std::uint64_t late_answers) {
    if (!scheduler_.poll(lock, mark.target)) return false;
    if (mark.late_answers < late_answers) {
        ++mark.late_answers;
        return false;
    }
    pass(mark);
    return true;
}

void Ordering::pass(const Mark& mark) {
    watch_.learn(mark.clock);
    now_ns_ = std::max(now_ns_, mark.time_ns);
}

namespace {

// Relaxed: the value only has to be unique; it publishes no other data.
std::uint64_t next_capture_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Capture::Capture(Stream& origin, std::uint64_t id, const Operation& begun)
    : id_(id), begun_(begun) {
    branches_.push_back({&origin, {}});
}

void Capture::add(const Stream& stream, Work work) {
    VectorClock& clock = branches_[stream.branch].clock;
    clock.raise(stream.branch, clock[stream.branch] + 1);
    nodes_.push_back({std::move(work), stream.branch, clock});
}

void Capture::order_after(const std::shared_ptr<Capture>& self, Stream& stream,
                          const VectorClock& clock) {
    if (stream.capture == nullptr) {
        stream.capture = self;
        stream.branch = static_cast<std::uint32_t>(branches_.size());
        branches_.push_back({&stream, {}});
    }
    branches_[stream.branch].clock.join(clock);
}

bool Capture::end() noexcept {
    bool joined = true;
    for (const Branch& branch : branches_) {
        joined = joined && branches_[0].clock.covers(branch.clock);
        branch.stream->capture = nullptr;
    }
    open_ = false;
    return joined;
}

void SimulatedCaptures::begin(Stream& stream) {
    stream.capture = std::make_shared<Capture>(stream, next_capture_id(),
                                               watch_.operation("begin_capture", stream.name));
    stream.branch = 0;
    under_way_.push_back(stream.capture);
    count_.store(static_cast<unsigned>(under_way_.size()), std::memory_order_relaxed);
}

GraphHandle SimulatedCaptures::end(Stream& stream) {
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

std::shared_ptr<Graph> SimulatedCaptures::graph(int device, GraphHandle handle) const {
    const auto found = graphs_.find(handle);
    if (found == graphs_.end() || found->second->device != device) {
        device::refuse("no such graph");
    }
    return found->second;
}

void SimulatedCaptures::destroy_graph(int device, GraphHandle handle) {
    const auto found = graph(device, handle);
    for (std::size_t branch = 1; branch < found->timelines.size(); ++branch) {
        timelines_.give(found->timelines[branch]);
    }
    graphs_.erase(handle);
}

const Capture* SimulatedCaptures::by_this_thread() const noexcept {
    for (const auto& capture : under_way_) {
        if (capture->by_this_thread()) return capture.get();
    }
    return nullptr;
}

void SimulatedCaptures::check_free(const Stream& stream, const std::string& call) {
    if (stream.capture != nullptr) refuse(*stream.capture, call);
}

void SimulatedCaptures::refuse(const Capture& capture, const std::string& call) {
    watch_.log.add(HazardKind::illegal_in_capture, watch_.host_operation(call), capture.begun(), 0,
                   0);
    throw DeviceError(DeviceStatus::in_capture, call);
}

}  // namespace tensorpool::device
