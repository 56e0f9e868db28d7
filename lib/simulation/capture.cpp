#include "simulation/capture.hpp"

#include <atomic>
#include <utility>

#include "device/call_errors.hpp"

namespace tensorpool::device {
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
