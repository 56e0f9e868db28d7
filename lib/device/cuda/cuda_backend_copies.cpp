#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using device::cuda::address_of;
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

/// Calls `give(stream)` with the backend's own stream and waits until the copy is done. The
/// driver's synchronous copies and fills are not used: they wait for the default stream, and some
/// return before all data has arrived.
template <class Give>
DeviceStatus wait_for(CudaState& state, CudaDevice& device, Give give) {
    state.refuse_in_capture();
    const Stream stream = state.copy_stream_of(device);
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
