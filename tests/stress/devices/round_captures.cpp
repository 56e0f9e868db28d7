#include <algorithm>

#include "stress/devices/round.hpp"
#include "stress/devices/violation.hpp"

// Captures. Their memory stays reserved while their graphs are launched again and again.

namespace tensorpool::stress::devices {
namespace {

// Together less than the reserved bytes.
constexpr std::size_t max_captured_blocks = 4;
constexpr std::size_t max_captured_bytes = std::size_t{512} << 10;
constexpr std::size_t reserved_bytes = std::size_t{4} << 20;
constexpr std::size_t max_graphs = 6;

}  // namespace

void Round::capture() {
    if (graphs_.size() >= max_graphs) return;
    Site& site = any_site();
    try {
        site.caching.reserve_for_capture(reserved_bytes);
    } catch (const DeviceAllocationError&) {
        return;
    }
    SimulatedBackend& backend = stage_.backend();
    Graph graph;
    graph.stream = stage_.stream(device_of(site), 1 + random_.below(Stage::streams_per_device - 1));
    const auto [device, stream] = graph.stream;
    capturing_ = true;
    stage_.expect_ok(backend.begin_capture(device, stream), "begin_capture");
    CaptureState state;
    stage_.expect_ok(backend.capture_state(device, stream, state), "capture_state");
    graph.id = state.id;
    capture_work(site, graph);
    stage_.expect_ok(backend.end_capture(device, stream, &graph.handle), "end_capture");
    capturing_ = false;
    graphs_.push_back(graph);
    site.memory->capture_ended(graph.id);
}

void Round::capture_work(Site& site, Graph& graph) {
    if (random_.one_in(2)) capture_other(site, graph);
    for (std::size_t count = 1 + random_.below(max_captured_blocks); count != 0; --count) {
        capture_block(site, graph);
        if (random_.one_in(2)) free_beside_capture(site, graph);
    }
}

/// Allocates and writes a block in the capture, and may read it and free it there.
void Round::capture_block(Site& site, Graph& graph) {
    const std::size_t bytes = random_.size(max_captured_bytes);
    Block* const block = add_block(site, site.memory->allocate(bytes, graph.stream.handle), bytes,
                                   graph.stream, false);
    if (block == nullptr) throw Violation("a capture did not get its reserved memory");
    const std::uint64_t word = random_.word();
    stage_.give_write(*block, graph.stream, word);
    if (random_.one_in(3)) capture_fork(site, graph, *block, word);
    if (random_.one_in(2)) stage_.give_read(*block, graph.stream, word);
    if (random_.one_in(2)) {
        deallocate(site, *block);
    } else {
        graph.own.push_back({block, word});
    }
}

/// Adds another stream to the capture and joins it again.
void Round::capture_fork(Site& site, const Graph& graph, Block& block, std::uint64_t word) {
    StreamOf other = stage_.stream(graph.stream.device, 1);
    if (other == graph.stream) other = stage_.stream(graph.stream.device, 2);
    stage_.order(graph.stream, other);
    stage_.give_read(block, other, word);
    if (random_.one_in(2)) {
        site.memory->record_use(block.address, other.handle);
        block.reported.push_back(other);
    }
    stage_.order(other, graph.stream);
}

/// Captures a write to a block from outside, which must then outlive the graph.
void Round::capture_other(Site& site, Graph& graph) {
    Block* const block = any_block(site);
    if (block == nullptr) return;
    const std::uint64_t word = random_.word();
    stage_.give_write(*block, graph.stream, word);
    ++block->holders;
    graph.others.push_back({block, word});
}

/// Frees a block unrelated to the capture during the capture.
void Round::free_beside_capture(Site& site, const Graph& graph) {
    Block* const block = any_block(site);
    if (block == nullptr || !is_free_to_go(*block) || !block->unreported.empty()) return;
    if (block->home != graph.stream) deallocate(site, *block);
}

void Round::launch() {
    if (graphs_.empty()) return;
    const Graph& graph = graphs_[random_.below(graphs_.size())];
    const StreamOf on = any_stream(graph.stream.device);
    Site& site = site_of(on.device);
    for (const StreamOf& user : graph.users) stage_.order(user, on);
    for (const auto* writes : {&graph.own, &graph.others}) {
        for (const Graph::Write& write : *writes) {
            stage_.order_for_write(*write.block, on);
            use(site, *write.block, on);
            write.block->word = write.word;
        }
    }
    stage_.expect_ok(stage_.backend().launch_graph(on.device, graph.handle, on.handle),
                     "launch_graph");
}

void Round::destroy_graph() {
    if (graphs_.empty()) return;
    std::swap(graphs_[random_.below(graphs_.size())], graphs_.back());
    destroy(graphs_.back());
}

/// REQUIRES: it is the last graph in the list.
void Round::destroy(Graph& graph) {
    const int device = graph.stream.device;
    Site& site = site_of(device);
    while (!graph.own.empty() && is_free_to_go(*graph.own.back().block) && random_.one_in(2)) {
        deallocate(site, *graph.own.back().block);
    }
    stage_.expect_ok(stage_.backend().destroy_graph(device, graph.handle), "destroy_graph");
    for (const Graph::Write& write : graph.others) --write.block->holders;
    site.memory->release_capture(graph.id);
    graphs_.pop_back();
}

/// Removes a freed block from the graphs. Launches still access its memory, which the capture
/// keeps.
void Round::forget_in_graphs(const Block& block) {
    for (Graph& graph : graphs_) {
        const auto is_it = [&](const Graph::Write& write) { return write.block == &block; };
        if (std::erase_if(graph.own, is_it) == 0) continue;
        for (const StreamOf& user : block.users) {
            if (!contains(graph.users, user)) graph.users.push_back(user);
        }
    }
}

}  // namespace tensorpool::stress::devices
