#include <tensorpool/device/cuda_backend.hpp>

#include <algorithm>
#include <mutex>

#include "device/cuda/cuda_state.hpp"
#include "device/cuda/handles.hpp"

namespace tensorpool {

using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::driver_address;
using device::cuda::driver_stream;

namespace {

/// Mapped memory does not follow the contexts' access: it is told for each mapping.
void let_read_mappings(CudaState& state, CudaDevice& owner, device::cuda::DeviceNumber reader) {
    const std::lock_guard guard(owner.mapping);
    if (std::find(owner.readers.begin(), owner.readers.end(), reader) != owner.readers.end()) {
        return;
    }
    for (const auto& [address, bytes] : owner.mappings) state.give_access(address, bytes, reader);
    owner.readers.push_back(reader);
}

}  // namespace

bool CudaBackend::can_access_peer(int device, int peer) noexcept {
    int can = 0;
    state_->errors.guard("cuda", [&] {
        return state_->ask(state_->api.can_access_peer, &can, state_->device_at(device).number,
                           state_->device_at(peer).number);
    });
    return can != 0;
}

DeviceStatus CudaBackend::enable_peer_access(int device, int peer) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        CudaDevice& owner = state_->device_at(peer);
        state_->ask(state_->api.enable_peer_access, state_->context_of(owner), 0U);
        let_read_mappings(*state_, owner, its.number);
        return DeviceStatus::ok;
    });
}

DeviceStatus CudaBackend::copy_peer_async(int to_device, void* to, int from_device,
                                          const void* from, std::size_t bytes,
                                          StreamHandle stream) noexcept {
    return state_->run(to_device, [&](CudaDevice& its) {
        CudaDevice& other = state_->device_at(from_device);
        if (bytes == 0) return DeviceStatus::ok;
        return state_->ask(state_->api.copy_peer, driver_address(to), state_->context_of(its),
                           driver_address(from), state_->context_of(other), bytes,
                           driver_stream(stream));
    });
}

}  // namespace tensorpool
