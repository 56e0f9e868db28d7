#include <tensorpool/device/host_backend.hpp>

#include <algorithm>
#include <string>

#include "device/host/host_state.hpp"

namespace tensorpool {

HostBackend::HostBackend() : state_(std::make_unique<State>()) {}
HostBackend::~HostBackend() = default;

// Devices ----------------------------------------------------------------------------------------

DeviceType HostBackend::type() const noexcept {
    return DeviceType::cpu;
}

int HostBackend::device_count() noexcept {
    return 1;
}

std::string HostBackend::device_name(int device) {
    return device == 0 ? state_->name : std::string();
}

DeviceAbilities HostBackend::abilities(int device) noexcept {
    if (device != 0) return {};
    const bool virtual_memory = state_->virtual_memory.is_there();
    return {.unified_memory = true,
            .shared_storage = true,
            .managed_storage = true,
            .managed_advice = true,
            .virtual_memory = virtual_memory,
            .stream_ordered_allocation = true,
            .graph_capture = true,
            .largest_allocation = state_->total_bytes,
            .granularity = virtual_memory ? device::HostVirtualMemory::granularity : 0};
}

DeviceStatus HostBackend::memory_info(int device, DeviceMemoryInfo& info) noexcept {
    return state_->call("memory_info", device, [&] {
        const std::size_t total = state_->total_bytes;
        info = {std::min(platform::available_memory(), total), total};
    });
}

DeviceStatus HostBackend::settle_memory(int device) noexcept {
    return state_->call("settle_memory", device, [&] { state_->captures.check_thread(); });
}

DeviceStatus HostBackend::synchronize_device(int device) noexcept {
    return state_->call("synchronize_device", device, [&] {
        state_->captures.check_thread();
        state_->streams.wait_for_all();
    });
}

// Errors -----------------------------------------------------------------------------------------

std::string HostBackend::last_error() {
    return state_->errors.last();
}

}  // namespace tensorpool
