#include <cstddef>
#include <utility>
#include <vector>

#include "simulation/simulation.hpp"

namespace tensorpool::device {
namespace {

// From a clock of a capture, which counts the nodes of its branches, to one of the simulation.
VectorClock clock_of_node(const VectorClock& before, const VectorClock& node,
                          const std::vector<Timeline>& branches) {
    VectorClock clock = before;
    for (std::size_t branch = 0; branch < branches.size(); ++branch) {
        if (node[branch] == 0) continue;
        clock.raise(branches[branch].number, branches[branch].tick + node[branch]);
    }
    return clock;
}

}  // namespace

DeviceStatus Simulation::replay(SimulationLock& lock, const std::shared_ptr<Stream>& on,
                                const std::shared_ptr<Graph>& graph) {
    Stream& stream = *on;
    // One launch of a graph comes after the other, on whatever streams.
    if (graph->last != nullptr) (void)order_after(lock, stream, *graph->last);
    graph->timelines[0] = stream.timeline;
    DeviceStatus status = DeviceStatus::ok;
    std::vector<Work> works;
    for (const Capture::Node& node : graph->capture->nodes()) {
        if (touch_of_node(stream, *graph, node)) {
            works.push_back(node.work);
        } else {
            status = not_there();
        }
    }
    const VectorClock& nodes = graph->capture->last_clock();
    for (std::size_t branch = 0; branch < graph->timelines.size(); ++branch) {
        Timeline& timeline = graph->timelines[branch];
        timeline.tick += nodes[branch];
        stream.clock.raise(timeline.number, timeline.tick);
    }
    stream.timeline = graph->timelines[0];
    for (Work& work : works) enqueue(lock, stream, std::move(work));
    graph->last = mark(on);
    return status;
}

bool Simulation::touch_of_node(Stream& stream, const Graph& graph, const Capture::Node& node) {
    const Timeline& branch = graph.timelines[node.branch];
    const VectorClock clock = clock_of_node(clock_of(stream), node.clock, graph.timelines);
    Toucher by;
    by.operation = watch.operation(node.work.label, stream.name, branch.number,
                                   branch.tick + node.clock[node.branch]);
    by.clock = &clock;
    by.device = stream.device;
    by.capture = graph.capture->id();
    by.captured_until = graph.captured_until;
    return checker.touch(by, node.work.reads, node.work.writes);
}

}  // namespace tensorpool::device
