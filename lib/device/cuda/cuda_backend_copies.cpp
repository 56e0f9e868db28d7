#include <tensorpool/device/cuda_backend.hpp>

#include <cstring>

#include "device/cuda/cuda_state.hpp"
#include "device/cuda/handles.hpp"

namespace tensorpool {

using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::driver_address;
using device::cuda::driver_stream;
using device::cuda::Stream;

namespace {

DeviceStatus give_copy(CudaState& state, CopyKind kind, void* to, const void* from,
                       std::size_t bytes, Stream stream) {
    switch (kind) {
        case CopyKind::host_to_host:
            return state.ask(state.api.copy, driver_address(to), driver_address(from), bytes,
                             stream);
        case CopyKind::host_to_device:
            return state.ask(state.api.copy_to_device, driver_address(to), from, bytes, stream);
        case CopyKind::device_to_host:
            return state.ask(state.api.copy_to_host, to, driver_address(from), bytes, stream);
        case CopyKind::device_to_device:
            return state.ask(state.api.copy_on_device, driver_address(to), driver_address(from),
                             bytes, stream);
    }
    throw DeviceError(DeviceStatus::invalid_argument,
                      "no such kind of copy: " + std::to_string(static_cast<int>(kind)));
}

/// `give(stream)` on a stream of our own, until it is done. The driver's plain copies and fills are
/// none of that: they wait for the default stream, and some return before all has arrived.
template <class Give>
DeviceStatus wait_for(CudaState& state, CudaDevice& device, Give give) {
    state.refuse_in_capture();
    const Stream stream = state.copy_stream_of(device);
    give(stream);
    return state.ask(state.api.stream_synchronize, stream);
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
        return give_copy(*state_, kind, to, from, bytes, driver_stream(stream));
    });
}

DeviceStatus CudaBackend::fill(int device, void* memory, std::uint8_t byte,
                               std::size_t bytes) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        if (bytes == 0) return DeviceStatus::ok;
        return wait_for(*state_, its, [&](Stream stream) {
            state_->ask(state_->api.fill, driver_address(memory), byte, bytes, stream);
        });
    });
}

DeviceStatus CudaBackend::fill_async(int device, void* memory, std::uint8_t byte, std::size_t bytes,
                                     StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        if (bytes == 0) return DeviceStatus::ok;
        return state_->ask(state_->api.fill, driver_address(memory), byte, bytes,
                           driver_stream(stream));
    });
}

}  // namespace tensorpool
