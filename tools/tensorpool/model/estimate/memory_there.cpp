#include "model/estimate/memory_there.hpp"

#include <tensorpool/device/cuda_backend.hpp>
#include <tensorpool/system_memory.hpp>

namespace tensorpool::command::model {
namespace {

std::optional<DeviceMemory> first_device() {
    CudaBackend cuda;
    DeviceMemoryInfo info;
    if (cuda.device_count() == 0 || cuda.memory_info(0, info) != DeviceStatus::ok)
        return std::nullopt;
    return DeviceMemory{cuda.device_name(0), info.free_bytes, info.total_bytes};
}

}  // namespace

MemoryThere look_at_memory() {
    return {get_available_memory(), get_total_memory(), first_device()};
}

}  // namespace tensorpool::command::model
