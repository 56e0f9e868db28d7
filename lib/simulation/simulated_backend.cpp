#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using namespace device;

// This file has the functions for the backend as a whole, its devices, and what only a simulation
// has, and captures. The others are in simulated_memory_calls.cpp and
// simulated_stream_calls.cpp.

SimulatedBackend::SimulatedBackend(const SimulationOptions& options)
    : simulation_(std::make_unique<Simulation>(options, nullptr)) {}

SimulatedBackend::SimulatedBackend(const SimulationOptions& options, device::ScheduleDriver& driver)
    : simulation_(std::make_unique<Simulation>(options, &driver)) {}

SimulatedBackend::~SimulatedBackend() = default;

DeviceType SimulatedBackend::type() const noexcept {
    return DeviceType::simulated;
}

int SimulatedBackend::device_count() noexcept {
    return simulation_->options.devices;
}

std::string SimulatedBackend::device_name(int device) {
    if (!simulation_->is_device(device)) return "";
    return "Simulated device " + std::to_string(device);
}

DeviceAbilities SimulatedBackend::abilities(int device) noexcept {
    DeviceAbilities abilities;
    if (!simulation_->is_device(device)) return abilities;
    const SimulationOptions& options = simulation_->options;
    abilities.unified_memory = options.unified_memory;
    abilities.shared_storage = options.shared_storage;
    abilities.managed_storage = options.managed_storage;
    abilities.managed_advice = options.managed_storage;
    abilities.virtual_memory = options.virtual_memory;
    abilities.stream_ordered_allocation = options.stream_ordered_allocation;
    abilities.graph_capture = options.graph_capture;
    abilities.late_free_size = options.late_free_size;
    abilities.watches_blocks = options.watches_blocks && options.finds_hazards;
    abilities.largest_allocation = options.largest_allocation;
    abilities.granularity = options.virtual_memory ? options.granularity : 0;
    abilities.recommended_bytes = options.recommended_bytes;
    return abilities;
}

DeviceStatus SimulatedBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return simulation_->call(SimulatedCall::memory_info, device,
                             [&](auto& s, auto&) { info = s.memory.share(device).info(); });
}

DeviceStatus SimulatedBackend::settle_memory(int device) noexcept {
    return simulation_->call(SimulatedCall::settle_memory, device,
                             [&](auto& s, auto&) { s.memory.share(device).late = 0; });
}

DeviceStatus SimulatedBackend::synchronize_device(int device) noexcept {
    return simulation_->call(SimulatedCall::synchronize_device, device,
                             [&](auto& s, auto& lock) { s.synchronize(lock, device); });
}

std::string SimulatedBackend::last_error() {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->book.error();
}

// Functions that only a simulation has -----------------------------------------------------------

DeviceStatus SimulatedBackend::launch(int device, StreamHandle stream,
                                      const SimulatedKernel& kernel) noexcept {
    return simulation_->call(SimulatedCall::launch, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        device::Work work;
        work.label = kernel.label;
        work.reads = kernel.reads;
        work.writes = kernel.writes;
        work.run = kernel.function;
        work.opaque = kernel.function && kernel.reads.empty() && kernel.writes.empty();
        work.duration_ns = kernel.duration_ns;
        s.give(lock, *found, std::move(work));
    });
}

bool SimulatedBackend::step(int device, StreamHandle stream) noexcept {
    SimulationLock lock(simulation_->mutex);
    if (!simulation_->is_device(device)) return false;
    const auto found = simulation_->streams.find(device, stream);
    return found != nullptr && simulation_->scheduler.step(lock, *found);
}

void SimulatedBackend::host_read(const void* address, std::size_t bytes,
                                 const char* label) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->host_touch(label, {{address, bytes}}, {});
}

void SimulatedBackend::host_write(void* address, std::size_t bytes, const char* label) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->host_touch(label, {}, {{address, bytes}});
}

std::vector<Hazard> SimulatedBackend::hazards() const {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->watch.log.kept();
}

std::uint64_t SimulatedBackend::hazard_count() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->watch.log.count();
}

void SimulatedBackend::clear_hazards() noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->watch.log.clear();
}

std::string SimulatedBackend::hazard_report() const {
    std::string text;
    for (const Hazard& hazard : hazards()) text += to_string(hazard) + '\n';
    return text;
}

SimulatedCalls SimulatedBackend::calls() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->book.calls();
}

void SimulatedBackend::reset_calls() noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->book.reset_calls();
}

void SimulatedBackend::set_faults(const SimulationFaults& faults) {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->book.set_faults(faults);
}

void SimulatedBackend::set_other_process_bytes(int device, std::size_t bytes) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    if (simulation_->is_device(device)) simulation_->memory.share(device).others = bytes;
}

std::uint64_t SimulatedBackend::now_ns() const noexcept {
    const std::lock_guard guard(simulation_->mutex);
    return simulation_->ordering.now_ns();
}

void SimulatedBackend::advance_ns(std::uint64_t ns) noexcept {
    const std::lock_guard guard(simulation_->mutex);
    simulation_->ordering.spend(ns);
}

const char* to_string(SimulatedCall call) noexcept {
    auto index = static_cast<std::size_t>(call);
    if (index >= simulated_call_count) return "?";
    // In the order of SimulatedCall, each with a zero at its end.
    const char* name =
        "memory_info\0settle_memory\0synchronize_device\0allocate\0deallocate\0"
        "allocate_async\0deallocate_async\0set_release_threshold\0trim_stream_ordered\0"
        "host_pointer\0advise_memory\0prefetch_memory\0reserve_addresses\0"
        "release_addresses\0create_memory\0destroy_memory\0map_memory\0unmap_memory\0"
        "allocate_pinned\0deallocate_pinned\0register_pinned\0unregister_pinned\0"
        "create_stream\0destroy_stream\0synchronize_stream\0query_stream\0wait_event\0"
        "launch_host_function\0create_event\0destroy_event\0record_event\0query_event\0"
        "synchronize_event\0elapsed_ms\0copy\0copy_async\0fill\0fill_async\0"
        "enable_peer_access\0copy_peer_async\0begin_capture\0end_capture\0"
        "capture_state\0launch_graph\0destroy_graph\0note_block\0launch\0";
    for (; index != 0; --index) name += std::strlen(name) + 1;
    return name;
}

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
