#include <tensorpool/device/simulated_backend.hpp>

#include "simulation/simulation.hpp"

namespace tensorpool {

using namespace device;

namespace {

std::string text_of(const HazardOperation& operation) {
    if (operation.number == 0) return "nothing known";
    return "\"" + operation.label + "\" (no. " + std::to_string(operation.number) + ", " +
           operation.stream + ")";
}

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
    Toucher by;
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
    std::vector<Work> works;
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
    for (Work& work : works) s.enqueue(lock, stream, std::move(work));
    graph.last = s.ordering.mark(on);
    if (!all_there) s.checker.refuse_touch();
}

// Returns the mark that the event stands for, or nullptr. The shared pointer keeps the mark alive
// if another thread records the event again.
std::shared_ptr<Mark> awaited_mark(Simulation& s, int device, EventHandle event, const char* call) {
    auto mark = s.streams.event(device, event).mark;
    if (mark != nullptr && mark->capture != nullptr) s.captures.refuse(*mark->capture, call);
    return mark;
}

std::uint64_t duration_ns(std::size_t bytes, double bytes_per_ns) noexcept {
    return static_cast<std::uint64_t>(static_cast<double>(bytes) / bytes_per_ns);
}

double bandwidth(const SimulationOptions& options, CopyKind kind) noexcept {
    const double of_kind[] = {
        options.host_to_host_bytes_per_ns, options.host_to_device_bytes_per_ns,
        options.device_to_host_bytes_per_ns, options.device_to_device_bytes_per_ns};
    return of_kind[static_cast<std::size_t>(kind)];
}

Work copy_work(std::string label, void* to, const void* from, std::size_t bytes, double speed) {
    Work work;
    work.label = std::move(label);
    work.reads = {{from, bytes}};
    work.writes = {{to, bytes}};
    work.run = [to, from, bytes] { std::memcpy(to, from, bytes); };
    work.duration_ns = duration_ns(bytes, speed);
    return work;
}

Work fill_work(void* memory, std::uint8_t byte, std::size_t bytes, double speed) {
    Work work;
    work.label = "fill";
    work.writes = {{memory, bytes}};
    work.run = [memory, byte, bytes] { std::memset(memory, byte, bytes); };
    work.duration_ns = duration_ns(bytes, speed);
    return work;
}

/// Reads the source of a copy now, as CUDA's driver does with pageable memory. The copy is then
/// made from what was read.
void take_source(Simulation& s, int device, Work& copy, void* to, const void* from,
                 std::size_t bytes) {
    const auto taken = std::make_shared<std::vector<std::byte>>(bytes);
    Work take;
    take.label = copy.label;
    take.reads = std::exchange(copy.reads, {});
    take.run = [&] { std::memcpy(taken->data(), from, bytes); };
    s.do_at_once(device, take);
    copy.run = [taken, to] { std::memcpy(to, taken->data(), taken->size()); };
}

std::string copy_label(CopyKind kind) {
    return std::string("copy ") + to_string(kind);
}

void check_kind(CopyKind kind) {
    if (kind > CopyKind::device_to_device) refuse("no such kind of copy");
}

}  // namespace

SimulatedBackend::SimulatedBackend(const SimulationOptions& options)
    : simulation_(std::make_unique<Simulation>(options, nullptr)) {}

SimulatedBackend::SimulatedBackend(const SimulationOptions& options, ScheduleDriver& driver)
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

// Streams, events and copies --------------------------------------------------------------------

DeviceStatus SimulatedBackend::create_stream(int device, StreamHandle* stream,
                                             int priority) noexcept {
    return simulation_->call(SimulatedCall::create_stream, device, [&](auto& s, auto&) {
        check_priority(priority, {});
        *stream = s.streams.create(device);
    });
}

DeviceStatus SimulatedBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::destroy_stream, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        if (stream == nullptr) refuse("no such stream");
        s.captures.check_free(*found, "destroy_stream");
        s.streams.destroy(stream);
    });
}

DeviceStatus SimulatedBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::synchronize_stream, device, [&](auto& s, auto& lock) {
        s.synchronize(lock, s.streams.get(device, stream), "synchronize_stream");
    });
}

DeviceStatus SimulatedBackend::query_stream(int device, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::query_stream, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        s.captures.check_free(*found, "query_stream");
        const bool passed = s.ordering.poll(lock, *s.ordering.mark(found));
        return passed ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::wait_event(int device, StreamHandle stream,
                                          EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::wait_event, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        const auto mark = s.streams.event(event).mark;
        if (mark != nullptr) s.order_after(lock, *found, *mark);
    });
}

DeviceStatus SimulatedBackend::launch_host_function(int device, StreamHandle stream,
                                                    void (*function)(void* argument),
                                                    void* argument) noexcept {
    return simulation_->call(SimulatedCall::launch_host_function, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        if (function == nullptr) refuse("no function");
        Work work;
        work.label = "host function";
        work.run = [function, argument] { function(argument); };
        work.opaque = true;
        s.give(lock, *found, std::move(work));
    });
}

// Events -----------------------------------------------------------------------------------------

DeviceStatus SimulatedBackend::create_event(int device, EventFlags flags,
                                            EventHandle* event) noexcept {
    return simulation_->call(SimulatedCall::create_event, device, [&](auto& s, auto&) {
        check_flags_of_one_process(flags);
        *event = s.streams.create_event(device, contains(flags, EventFlags::timing));
    });
}

DeviceStatus SimulatedBackend::destroy_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::destroy_event, device,
                             [&](auto& s, auto&) { s.streams.destroy_event(device, event); });
}

DeviceStatus SimulatedBackend::record_event(int device, EventHandle event,
                                            StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::record_event, device, [&](auto& s, auto&) {
        const auto found = s.streams.get(device, stream);
        s.streams.event(device, event).mark = s.ordering.mark(found);
    });
}

DeviceStatus SimulatedBackend::query_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::query_event, device, [&](auto& s, auto& lock) {
        const auto mark = awaited_mark(s, device, event, "query_event");
        if (mark == nullptr) return DeviceStatus::ok;
        const std::uint64_t late_answers = s.book.faults().slow_event_queries;
        const bool passed = s.ordering.poll(lock, *mark, late_answers);
        return passed ? DeviceStatus::ok : DeviceStatus::not_ready;
    });
}

DeviceStatus SimulatedBackend::synchronize_event(int device, EventHandle event) noexcept {
    return simulation_->call(SimulatedCall::synchronize_event, device, [&](auto& s, auto& lock) {
        const auto mark = awaited_mark(s, device, event, "synchronize_event");
        if (mark == nullptr) return;
        s.ordering.wait(lock, *mark);
        s.memory.share(device).late = 0;
    });
}

DeviceStatus SimulatedBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                          float* ms) noexcept {
    return simulation_->call(SimulatedCall::elapsed_ms, device, [&](auto& s, auto&) {
        const Event& first = s.streams.event(device, from);
        const Event& last = s.streams.event(device, to);
        if (!first.timing || !last.timing || first.mark == nullptr || last.mark == nullptr) {
            refuse("not both with timing and recorded");
        }
        for (const Event* const event : {&first, &last}) {
            if (event->mark->capture != nullptr)
                s.captures.refuse(*event->mark->capture, "elapsed_ms");
        }
        if (!first.mark->target.reached() || !last.mark->target.reached()) {
            return DeviceStatus::not_ready;
        }
        const auto ns = static_cast<std::int64_t>(last.mark->time_ns - first.mark->time_ns);
        *ms = static_cast<float>(static_cast<double>(ns) / 1e6);
        return DeviceStatus::ok;
    });
}

DeviceStatus SimulatedBackend::copy(int device, CopyKind kind, void* to, const void* from,
                                    std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::copy, device, [&](auto& s, auto& lock) {
        check_kind(kind);
        if (bytes == 0) return;
        s.do_now(lock, device,
                 copy_work(copy_label(kind), to, from, bytes, bandwidth(s.options, kind)));
    });
}

DeviceStatus SimulatedBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                          std::size_t bytes, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::copy_async, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        check_kind(kind);
        if (bytes == 0) return;
        Work work = copy_work(copy_label(kind), to, from, bytes, bandwidth(s.options, kind));
        const bool is_pageable = s.memory.find(reinterpret_cast<std::uintptr_t>(from)) == nullptr;
        const bool is_captured = found->capture != nullptr;
        if (kind == CopyKind::host_to_device && is_pageable && !is_captured) {
            take_source(s, device, work, to, from, bytes);
        }
        s.give(lock, *found, std::move(work));
    });
}

DeviceStatus SimulatedBackend::fill(int device, void* memory, std::uint8_t byte,
                                    std::size_t bytes) noexcept {
    return simulation_->call(SimulatedCall::fill, device, [&](auto& s, auto& lock) {
        if (bytes == 0) return;
        s.do_now(lock, device,
                 fill_work(memory, byte, bytes, s.options.device_to_device_bytes_per_ns));
    });
}

DeviceStatus SimulatedBackend::fill_async(int device, void* memory, std::uint8_t byte,
                                          std::size_t bytes, StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::fill_async, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        if (bytes == 0) return;
        s.give(lock, *found,
               fill_work(memory, byte, bytes, s.options.device_to_device_bytes_per_ns));
    });
}

// Peers ------------------------------------------------------------------------------------------

bool SimulatedBackend::can_access_peer(int device, int peer) noexcept {
    return device != peer && simulation_->is_device(device) && simulation_->is_device(peer);
}

DeviceStatus SimulatedBackend::enable_peer_access(int device, int peer) noexcept {
    return simulation_->call(SimulatedCall::enable_peer_access, device, [&](auto& s, auto&) {
        if (!can_access_peer(device, peer)) refuse("no such peer");
        s.peers[static_cast<std::size_t>(device)][static_cast<std::size_t>(peer)] = true;
    });
}

DeviceStatus SimulatedBackend::copy_peer_async(int to_device, void* to, int from_device,
                                               const void* from, std::size_t bytes,
                                               StreamHandle stream) noexcept {
    return simulation_->call(SimulatedCall::copy_peer_async, to_device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(to_device, stream);
        if (to_device == from_device || !s.reaches(to_device, from_device)) {
            refuse("without access to its peer");
        }
        if (bytes == 0) return;
        s.give(lock, *found,
               copy_work("copy from peer", to, from, bytes, s.options.peer_bytes_per_ns));
    });
}

// Captures ---------------------------------------------------------------------------------------

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
                            [&](auto& s, auto&) { s.note_block(note); });
}

// Functions that only a simulation has -----------------------------------------------------------

DeviceStatus SimulatedBackend::launch(int device, StreamHandle stream,
                                      const SimulatedKernel& kernel) noexcept {
    return simulation_->call(SimulatedCall::launch, device, [&](auto& s, auto& lock) {
        const auto found = s.streams.get(device, stream);
        Work work;
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

// Names ------------------------------------------------------------------------------------------

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

const char* to_string(HazardKind kind) noexcept {
    return device::text_of(
        {"reuse before the last use completed", "access after free", "read of uninitialised memory",
         "missing record_use", "host access before the work completed", "illegal call in capture",
         "access outside of any allocation", "free of memory in use", "double free",
         "unordered access", "overlapping blocks", "host access to private memory"},
        kind);
}

std::string to_string(const Hazard& hazard) {
    std::string text = to_string(hazard.kind);
    text += ": " + text_of(hazard.operation) + " after " + text_of(hazard.other);
    if (hazard.bytes == 0) return text;
    char range[64];
    std::snprintf(range, sizeof range, ", %zu bytes at %p", hazard.bytes, hazard.address);
    return text + range;
}

}  // namespace tensorpool
