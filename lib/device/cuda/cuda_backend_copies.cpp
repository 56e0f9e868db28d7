#include <tensorpool/device/cuda_backend.hpp>

#include <list>
#include <mutex>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using device::cuda::address_of;
using device::cuda::CopyLane;
using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::Stream;
using device::cuda::to_driver;

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

/// Owns a lane of the device that no other call uses meanwhile, so that threads do not wait for the
/// copies of each other. As many lanes are made as calls use at once, and the backend keeps them.
/// REQUIRES: the device's context is current.
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
        state.invoke(state.api.stream_create, &made.stream, device::cuda::stream_non_blocking);
        try {
            state.invoke(state.api.event_create, &made.event, device::cuda::event_disable_timing);
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

}  // namespace

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

}  // namespace tensorpool
