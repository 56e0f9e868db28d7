#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using device::cuda::CaptureMode;
using device::cuda::CaptureStatus;
using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::Graph;
using device::cuda::GraphExec;
using device::cuda::Stream;
using device::cuda::to_driver;

namespace {

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

}  // namespace

DeviceStatus CudaBackend::begin_capture(int device, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        expect_graphs(its);
        const Stream captured = to_driver(stream);
        state_->invoke(state_->api.begin_capture, captured, CaptureMode::relaxed);
        try {
            state_->captures.begin(captured);
        } catch (...) {
            Graph graph = nullptr;
            if (state_->api.end_capture(captured, &graph) == device::cuda::Result::success) {
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
        if (!its.abilities.graph_capture || handle <= device::cuda::legacy_stream_handle) {
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

}  // namespace tensorpool
