// The default pools of stream-ordered allocation (reference, "Stream Ordered Memory Allocator").

#include <algorithm>

#include "lab/fake_cuda/objects.hpp"

using namespace fake_cuda;

namespace fake_cuda {

void take_from_pool(int device, std::size_t bytes) {
    DeviceState& state = driver().devices[device];
    const std::size_t kept = std::min(state.pool.kept, bytes);
    state.pool.kept -= kept;
    state.used -= kept;
}

void return_to_pool(int device, std::size_t bytes) {
    DeviceState& state = driver().devices[device];
    state.pool.in_use -= bytes;
    state.pool.kept += bytes;
    state.used += bytes;
}

void trim_pool(int device, std::uint64_t bytes) {
    DeviceState& state = driver().devices[device];
    const std::uint64_t held = state.pool.in_use + state.pool.kept;
    const auto excess = static_cast<std::size_t>(held - std::min(held, bytes));
    const std::size_t released = std::min(excess, state.pool.kept);
    state.pool.kept -= released;
    state.used -= released;
}

void release_above_threshold(int device) {
    trim_pool(device, driver().devices[device].pool.release_threshold);
}

}  // namespace fake_cuda

extern "C" {

Result cuDeviceGetDefaultMemPool(MemoryPool* pool, DeviceNumber device) {
    return enter("cuDeviceGetDefaultMemPool", [&](Lock&) {
        if (device < 0 || device >= driver().device_count) return Result::invalid_device;
        *pool = &driver().devices[device].pool;
        (*pool)->device = device;
        return Result::success;
    });
}

Result cuMemPoolSetAttribute(MemoryPool pool, MemoryPoolAttribute attribute, void* value) {
    return enter("cuMemPoolSetAttribute", [&](Lock&) {
        if (attribute != MemoryPoolAttribute::release_threshold) return Result::invalid_value;
        pool->release_threshold = *static_cast<std::uint64_t*>(value);
        return Result::success;
    });
}

Result cuMemPoolGetAttribute(MemoryPool pool, MemoryPoolAttribute attribute, void* value) {
    return enter("cuMemPoolGetAttribute", [&](Lock&) {
        auto& found = *static_cast<std::uint64_t*>(value);
        switch (attribute) {
            case MemoryPoolAttribute::release_threshold:
                found = pool->release_threshold;
                return Result::success;
            case MemoryPoolAttribute::reserved_bytes:
                found = pool->in_use + pool->kept;
                return Result::success;
        }
        return Result::invalid_value;
    });
}

Result cuMemPoolTrimTo(MemoryPool pool, std::size_t bytes) {
    return enter("cuMemPoolTrimTo", [&](Lock&) {
        trim_pool(pool->device, bytes);
        return Result::success;
    });
}

}  // extern "C"
