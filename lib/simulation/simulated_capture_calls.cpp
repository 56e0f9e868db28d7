#include <tensorpool/device/simulated_backend.hpp>

#include <atomic>

#include "simulation/capture.hpp"
#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Capture;
using device::Graph;
using device::Simulation;
using device::SimulationLock;

namespace {

// Only a number: nothing is read by means of it.
std::uint64_t next_capture_id() noexcept {
    static std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

DeviceStatus SimulatedBackend::begin_capture(int device, StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::begin_capture, device, [&](SimulationLock&) {
        if (!s.options.graph_capture) return DeviceStatus::not_supported;
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "begin_capture");
        found->capture = std::make_shared<Capture>(*found, next_capture_id(),
                                                   s.watch.operation("begin_capture", found->name));
        found->branch = 0;
        s.captures.push_back(found->capture);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::end_capture(int device, StreamHandle stream,
                                           GraphHandle* graph) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::end_capture, device, [&](SimulationLock&) {
        if (!s.options.graph_capture) return DeviceStatus::not_supported;
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        const auto capture = found->capture;
        if (capture == nullptr || !capture->began_in(*found)) {
            return s.refuse(DeviceStatus::invalid_argument, "no capture began in this stream");
        }
        std::erase(s.captures, capture);
        if (!capture->end()) return s.illegal(capture.get(), "end_capture with streams not joined");
        auto made = std::make_shared<Graph>();
        made->captured_until = s.watch.operations;
        made->timelines.resize(1);
        while (made->timelines.size() < capture->branches()) {
            made->timelines.push_back(s.timelines.take(s.watch.host));
        }
        made->device = device;
        made->capture = capture;
        *graph = reinterpret_cast<GraphHandle>(made.get());
        s.graphs.emplace(*graph, std::move(made));
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::capture_state(int device, StreamHandle stream,
                                             CaptureState& state) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::capture_state, device, [&](SimulationLock&) {
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        state = {};
        if (found->capture != nullptr) state = {true, found->capture->id()};
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::launch_graph(int device, GraphHandle graph,
                                            StreamHandle stream) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::launch_graph, device, [&](SimulationLock& lock) {
        if (!s.options.graph_capture) return DeviceStatus::not_supported;
        const auto found = s.stream(device, stream);
        if (found == nullptr) return s.no_stream();
        const auto launched = s.graph(device, graph);
        if (launched == nullptr) return s.refuse(DeviceStatus::invalid_argument, "no such graph");
        if (found->capture != nullptr) return s.illegal(found->capture.get(), "launch_graph");
        return s.replay(lock, found, launched);
    });
}

DeviceStatus SimulatedBackend::destroy_graph(int device, GraphHandle graph) noexcept {
    Simulation& s = *simulation_;
    return s.call(SimulatedCall::destroy_graph, device, [&](SimulationLock&) {
        if (!s.options.graph_capture) return DeviceStatus::not_supported;
        const auto found = s.graph(device, graph);
        if (found == nullptr) return s.refuse(DeviceStatus::invalid_argument, "no such graph");
        for (std::size_t branch = 1; branch < found->timelines.size(); ++branch) {
            s.timelines.give(found->timelines[branch]);
        }
        s.graphs.erase(graph);
        return DeviceStatus::ok;
    });
}

void SimulatedBackend::note_block(const BlockNote& note) noexcept {
    (void)simulation_->call(SimulatedCall::note_block, note.device, [&](SimulationLock&) {
        simulation_->note(note);
        return DeviceStatus::ok;
    });
}

}  // namespace tensorpool
