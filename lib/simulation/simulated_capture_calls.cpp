#include <tensorpool/device/simulated_backend.hpp>

#include <utility>

#include "simulation/block_notes.hpp"
#include "simulation/simulation.hpp"

namespace tensorpool {

using device::Capture;
using device::Graph;
using device::Simulation;
using device::SimulationLock;
using device::Stream;
using device::Timeline;
using device::VectorClock;

namespace {

// Converts a clock of a capture, which counts nodes by branch, to a clock of the simulation.
VectorClock clock_of_node(const VectorClock& before, const VectorClock& node,
                          const std::vector<Timeline>& branches) {
    VectorClock clock = before;
    for (std::size_t branch = 0; branch < branches.size(); ++branch) {
        if (node[branch] == 0) continue;
        clock.raise(branches[branch].number, branches[branch].tick + node[branch]);
    }
    return clock;
}

bool touch_of_node(Simulation& s, Stream& stream, const Graph& graph, const Capture::Node& node) {
    const Timeline& branch = graph.timelines[node.branch];
    const VectorClock clock =
        clock_of_node(s.ordering.clock_of(stream), node.clock, graph.timelines);
    device::Toucher by;
    by.operation = s.watch.operation(node.work.label, stream.name, branch.number,
                                     branch.tick + node.clock[node.branch]);
    by.clock = &clock;
    by.device = stream.device;
    by.capture = graph.capture->id();
    by.captured_until = graph.captured_until;
    return s.checker.touch(by, node.work.reads, node.work.writes);
}

// Work that touches memory that does not exist is skipped. The launch is rejected after all other
// work was submitted.
void replay(Simulation& s, SimulationLock& lock, const std::shared_ptr<Stream>& on, Graph& graph) {
    Stream& stream = *on;
    // Launches of one graph run one after the other, on whichever streams.
    if (graph.last != nullptr) s.order_after(lock, stream, *graph.last);
    graph.timelines[0] = stream.timeline;
    const auto& nodes = graph.capture->nodes();
    std::vector<device::Work> works;
    for (const Capture::Node& node : nodes) {
        if (touch_of_node(s, stream, graph, node)) works.push_back(node.work);
    }
    const bool all_there = works.size() == nodes.size();
    const VectorClock& last = graph.capture->last_clock();
    for (std::size_t branch = 0; branch < graph.timelines.size(); ++branch) {
        Timeline& timeline = graph.timelines[branch];
        timeline.tick += last[branch];
        stream.clock.raise(timeline.number, timeline.tick);
    }
    stream.timeline = graph.timelines[0];
    for (device::Work& work : works) s.enqueue(lock, stream, std::move(work));
    graph.last = s.ordering.mark(on);
    if (!all_there) s.checker.refuse_touch();
}

}  // namespace

DeviceStatus SimulatedBackend::begin_capture(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::begin_capture, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        s.captures.check_free(*found, "begin_capture");
        s.captures.begin(*found);
    });
}

DeviceStatus SimulatedBackend::end_capture(int device, StreamHandle stream,
                                           GraphHandle* graph) noexcept {
    return simulation_->call(SimulatedCall::end_capture, device, [&](auto& s, auto&) {
        *graph = s.captures.end(*s.streams.get(device, stream));
    });
}

const std::atomic<unsigned>& SimulatedBackend::captures_under_way() const noexcept {
    return simulation_->captures.count();
}

DeviceStatus SimulatedBackend::capture_state(int device, StreamHandle stream,
                                             CaptureState& state) noexcept {
    return simulation_->call(SimulatedCall::capture_state, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        state = {};
        if (found->capture != nullptr) state = {true, found->capture->id()};
    });
}

DeviceStatus SimulatedBackend::launch_graph(int device, GraphHandle graph,
                                            StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::launch_graph, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        const auto launched = s.captures.graph(device, graph);
        s.captures.check_free(*found, "launch_graph");
        replay(s, lock, found, *launched);
    });
}

DeviceStatus SimulatedBackend::destroy_graph(int device, GraphHandle graph) noexcept {
    return simulation_->call(SimulatedCall::destroy_graph, device,
                             [&](auto& s, auto&) { s.captures.destroy_graph(device, graph); });
}

void SimulatedBackend::note_block(const BlockNote& note) noexcept {
    (void)simulation_->call(SimulatedCall::note_block, note.device,
                            [&](auto& s, auto&) { device::note_block(s, note); });
}

}  // namespace tensorpool
