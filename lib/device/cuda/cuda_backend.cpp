#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using namespace device::cuda;

namespace {

DeviceStatus give_copy(CudaState& state, CopyKind kind, void* to, const void* from,
                       std::size_t bytes, Stream stream) {
    switch (kind) {
        case CopyKind::host_to_host:
            return state.invoke(state.api.copy, address_of(to), address_of(from), bytes, stream);
        case CopyKind::host_to_device:
            return state.invoke(state.api.copy_to_device, address_of(to), from, bytes, stream);
        case CopyKind::device_to_host:
            return state.invoke(state.api.copy_to_host, to, address_of(from), bytes, stream);
        case CopyKind::device_to_device:
            return state.invoke(state.api.copy_on_device, address_of(to), address_of(from), bytes,
                                stream);
    }
    throw DeviceError(DeviceStatus::invalid_argument,
                      "no such kind of copy: " + std::to_string(static_cast<int>(kind)));
}

/// Owns a lane of the device. No other call uses the lane at the same time, so threads do not wait
/// for the copies of each other. As many lanes are made as calls use at once, and the backend keeps
/// them. REQUIRES: the device's context is current.
class BorrowedLane {
public:
    BorrowedLane(CudaState& state, CudaDevice& device) : device_(device) {
        take_idle();
        if (lane_.empty()) make(state);
    }
    ~BorrowedLane() {
        const std::lock_guard guard(device_.copying);
        device_.idle_lanes.splice(device_.idle_lanes.begin(), lane_);
    }
    BorrowedLane(const BorrowedLane&) = delete;
    BorrowedLane& operator=(const BorrowedLane&) = delete;

    const CopyLane& lane() const noexcept { return lane_.front(); }

private:
    void take_idle() noexcept {
        const std::lock_guard guard(device_.copying);
        std::list<CopyLane>& idle = device_.idle_lanes;
        if (!idle.empty()) lane_.splice(lane_.begin(), idle, idle.begin());
    }
    void make(CudaState& state) {
        CopyLane& made = lane_.emplace_back();
        state.invoke(state.api.stream_create, &made.stream, stream_non_blocking);
        try {
            state.invoke(state.api.event_create, &made.event, event_disable_timing);
        } catch (...) {
            state.api.stream_destroy(made.stream);
            throw;
        }
    }

    CudaDevice& device_;
    std::list<CopyLane> lane_;  // a list, because its node can be given back without a failure
};

/// Calls `give(stream)` with a stream that follows the default stream's work so far, and waits
/// until the copy is done. The driver's synchronous copies and fills have the same order but some
/// return before all data has arrived (CUDA Driver API, "API synchronization behavior").
template <class Give>
DeviceStatus wait_for(CudaState& state, CudaDevice& device, Give give) {
    state.refuse_in_capture();
    const BorrowedLane borrowed(state, device);
    const auto& [stream, event] = borrowed.lane();
    state.invoke(state.api.event_record, event, Stream{nullptr});
    state.invoke(state.api.stream_wait_event, stream, event, 0U);
    give(stream);
    return state.invoke(state.api.stream_synchronize, stream);
}

void expect_graphs(const CudaDevice& device) {
    if (device.abilities.graph_capture) return;
    throw DeviceError(DeviceStatus::not_supported,
                      "the driver cannot capture; expected a driver of CUDA 11.3 or newer");
}

GraphExec instantiate(CudaState& state, Graph graph) {
    GraphExec made = nullptr;
    state.invoke(state.api.graph_instantiate, &made, graph, nullptr, nullptr, std::size_t{0});
    return made;
}

/// REQUIRES: the device's context is current.
StreamPriorities priorities_of(CudaState& state) {
    StreamPriorities priorities;
    state.invoke(state.api.stream_priority_range, &priorities.lowest, &priorities.highest);
    return priorities;
}

unsigned driver_flags(EventFlags flags) {
    device::check_event_flags(flags);
    unsigned made = event_default;
    if (!contains(flags, EventFlags::timing)) made |= event_disable_timing;
    if (contains(flags, EventFlags::blocking)) made |= event_blocking_sync;
    if (contains(flags, EventFlags::interprocess)) made |= event_interprocess;
    return made;
}

}  // namespace

CudaBackend::CudaBackend() : CudaBackend(platform::cuda_driver_name) {}
CudaBackend::CudaBackend(const std::string& library)
    : state_(std::make_unique<CudaState>(library)) {}
CudaBackend::~CudaBackend() = default;

int CudaBackend::device_count() noexcept {
    return static_cast<int>(state_->devices.size());
}

std::string CudaBackend::device_name(int device) {
    std::string name;
    state_->errors.guard("cuda", [&] {
        name = state_->device_at(device).name;
        return DeviceStatus::ok;
    });
    return name;
}

DeviceAbilities CudaBackend::abilities(int device) noexcept {
    DeviceAbilities abilities;
    state_->errors.guard("cuda", [&] {
        abilities = state_->device_at(device).abilities;
        return DeviceStatus::ok;
    });
    return abilities;
}

DeviceStatus CudaBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return state_->call(device, state_->api.memory_info, &info.free_bytes, &info.total_bytes);
}

DeviceStatus CudaBackend::synchronize_device(int device) noexcept {
    return state_->call_waiting(device, state_->api.context_synchronize);
}

std::string CudaBackend::last_error() {
    const std::string own = state_->errors.last();
    return own.empty() ? state_->problem : own;
}

DeviceStatus CudaBackend::copy(int device, CopyKind kind, void* to, const void* from,
                               std::size_t bytes) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        if (bytes == 0) return DeviceStatus::ok;
        return wait_for(*state_, its,
                        [&](Stream stream) { give_copy(*state_, kind, to, from, bytes, stream); });
    });
}

DeviceStatus CudaBackend::copy_async(int device, CopyKind kind, void* to, const void* from,
                                     std::size_t bytes, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        if (bytes == 0) return DeviceStatus::ok;
        return give_copy(*state_, kind, to, from, bytes, to_driver(stream));
    });
}

DeviceStatus CudaBackend::fill(int device, void* memory, std::uint8_t byte,
                               std::size_t bytes) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        if (bytes == 0) return DeviceStatus::ok;
        return wait_for(*state_, its, [&](Stream stream) {
            state_->invoke(state_->api.fill, address_of(memory), byte, bytes, stream);
        });
    });
}

DeviceStatus CudaBackend::fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                     StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        if (bytes == 0) return DeviceStatus::ok;
        return state_->invoke(state_->api.fill, address_of(memory), byte, bytes, stream);
    });
}

// Peers ------------------------------------------------------------------------------------------

bool CudaBackend::can_access_peer(int device, int peer) noexcept {
    int can = 0;
    state_->errors.guard("cuda", [&] {
        return state_->invoke(state_->api.can_access_peer, &can, state_->device_at(device).number,
                              state_->device_at(peer).number);
    });
    return can != 0;
}

DeviceStatus CudaBackend::enable_peer_access(int device, int peer) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        CudaDevice& owner = state_->device_at(peer);
        return state_->invoke(state_->api.enable_peer_access, state_->context_of(owner), 0U);
    });
}

DeviceStatus CudaBackend::copy_peer_async(int to_device, void* to, int from_device,
                                          const void* from, std::size_t bytes,
                                          StreamHandle stream) noexcept {
    return state_->run(to_device, [&](CudaDevice& its) {
        CudaDevice& other = state_->device_at(from_device);
        if (bytes == 0) return DeviceStatus::ok;
        return state_->invoke(state_->api.copy_peer, address_of(to), state_->context_of(its),
                              address_of(from), state_->context_of(other), bytes, stream);
    });
}

DeviceStatus CudaBackend::begin_capture(int device, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        expect_graphs(its);
        const Stream captured = to_driver(stream);
        state_->invoke(state_->api.begin_capture, captured, CaptureMode::relaxed);
        try {
            state_->captures.begin(captured);
        } catch (...) {
            Graph graph = nullptr;
            if (state_->api.end_capture(captured, &graph) == Result::success) {
                state_->api.graph_destroy(graph);
            }
            throw;
        }
    });
}

DeviceStatus CudaBackend::end_capture(int device, StreamHandle stream,
                                      GraphHandle* graph) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        expect_graphs(its);
        state_->captures.end(to_driver(stream));
        Graph kept = nullptr;
        state_->invoke(state_->api.end_capture, stream, &kept);
        const auto destroy = [&] { state_->api.graph_destroy(kept); };
        try {
            *graph = reinterpret_cast<GraphHandle>(instantiate(*state_, kept));
        } catch (...) {
            destroy();
            throw;
        }
        destroy();
    });
}

DeviceStatus CudaBackend::capture_state(int device, StreamHandle stream,
                                        CaptureState& state) noexcept {
    state = {};
    return state_->run(device, [&](const CudaDevice& its) {
        // The default stream is never captured, and the driver rejects this query for it.
        const auto handle = reinterpret_cast<std::uintptr_t>(stream);
        if (!its.abilities.graph_capture || handle <= legacy_stream_handle) {
            return DeviceStatus::ok;
        }
        CaptureStatus status = CaptureStatus::none;
        std::uint64_t id = 0;
        state_->invoke(state_->api.capture_info, stream, &status, &id, nullptr, nullptr, nullptr);
        if (status != CaptureStatus::none) state = {true, id};
        return DeviceStatus::ok;
    });
}

const std::atomic<unsigned>& CudaBackend::captures_under_way() const noexcept {
    return state_->captures.count();
}

DeviceStatus CudaBackend::launch_graph(int device, GraphHandle graph,
                                       StreamHandle stream) noexcept {
    return state_->call(device, state_->api.graph_launch, graph, stream);
}

DeviceStatus CudaBackend::destroy_graph(int device, GraphHandle graph) noexcept {
    return state_->call(device, state_->api.graph_exec_destroy, graph);
}

// The driver would clamp a priority outside the range (reference, cuStreamCreateWithPriority).
DeviceStatus CudaBackend::create_stream(int device, StreamHandle* stream, int priority) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        if (priority != 0) device::check_priority(priority, priorities_of(*state_));
        Stream made = nullptr;
        state_->invoke(state_->api.stream_create_with_priority, &made, stream_non_blocking,
                       priority);
        try {
            state_->own_streams.add(made);
        } catch (...) {
            state_->api.stream_destroy(made);
            throw;
        }
        *stream = reinterpret_cast<StreamHandle>(made);
    });
}

DeviceStatus CudaBackend::stream_priorities(int device, StreamPriorities& priorities) noexcept {
    return state_->run(device, [&](const CudaDevice&) { priorities = priorities_of(*state_); });
}

DeviceStatus CudaBackend::destroy_stream(int device, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        // Removed first: the driver may give the handle out again at once.
        const bool own = state_->own_streams.remove(to_driver(stream));
        try {
            return state_->invoke(state_->api.stream_destroy, stream);
        } catch (...) {
            if (own) state_->own_streams.add(to_driver(stream));
            throw;
        }
    });
}

bool CudaBackend::owns_stream(int, StreamHandle stream) noexcept {
    const auto handle = reinterpret_cast<std::uintptr_t>(stream);
    return handle <= legacy_stream_handle || state_->own_streams.contains(to_driver(stream));
}

DeviceStatus CudaBackend::stream_id(int device, StreamHandle stream, std::uint64_t* id) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        unsigned long long found = 0;
        state_->invoke(state_->api.stream_id, stream, &found);
        *id = found;
    });
}

DeviceStatus CudaBackend::synchronize_stream(int device, StreamHandle stream) noexcept {
    return state_->call_waiting(device, state_->api.stream_synchronize, stream);
}

DeviceStatus CudaBackend::query_stream(int device, StreamHandle stream) noexcept {
    return state_->call(device, state_->api.stream_query, stream);
}

DeviceStatus CudaBackend::wait_event(int device, StreamHandle stream, EventHandle event) noexcept {
    return state_->call(device, state_->api.stream_wait_event, stream, event, 0U);
}

DeviceStatus CudaBackend::launch_host_function(int device, StreamHandle stream,
                                               void (*function)(void* argument),
                                               void* argument) noexcept {
    return state_->call(device, state_->api.launch_host_function, stream, function, argument);
}

DeviceStatus CudaBackend::create_event(int device, EventFlags flags, EventHandle* event) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        Event made = nullptr;
        state_->invoke(state_->api.event_create, &made, driver_flags(flags));
        *event = reinterpret_cast<EventHandle>(made);
    });
}

DeviceStatus CudaBackend::destroy_event(int device, EventHandle event) noexcept {
    return state_->call(device, state_->api.event_destroy, event);
}

DeviceStatus CudaBackend::record_event(int device, EventHandle event,
                                       StreamHandle stream) noexcept {
    return state_->call(device, state_->api.event_record, event, stream);
}

DeviceStatus CudaBackend::query_event(int device, EventHandle event) noexcept {
    return state_->call(device, state_->api.event_query, event);
}

DeviceStatus CudaBackend::synchronize_event(int device, EventHandle event) noexcept {
    return state_->call_waiting(device, state_->api.event_synchronize, event);
}

DeviceStatus CudaBackend::elapsed_ms(int device, EventHandle from, EventHandle to,
                                     float* ms) noexcept {
    return state_->call(device, state_->api.event_elapsed, ms, from, to);
}

}  // namespace tensorpool
