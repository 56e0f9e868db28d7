#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"
#include "platform/process/dynamic_library.hpp"

namespace tensorpool {

using device::cuda::CudaState;

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

}  // namespace tensorpool
