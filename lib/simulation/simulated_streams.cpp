#include "simulation/simulated_streams.hpp"

#include <algorithm>
#include <utility>

#include "device/call_errors.hpp"
#include "simulation/capture.hpp"

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

}  // namespace tensorpool::device
