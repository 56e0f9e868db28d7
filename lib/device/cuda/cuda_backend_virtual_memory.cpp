#include <tensorpool/device/cuda_backend.hpp>

#include <mutex>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using device::cuda::address_of;
using device::cuda::AllocationProperties;
using device::cuda::CudaDevice;
using device::cuda::CudaState;
using device::cuda::DeviceAddress;
using device::cuda::MemoryNumber;
using device::cuda::pointer_of;

namespace {

/// REQUIRES: the device's mapping lock.
void give_access_to_all(CudaState& state, const CudaDevice& device, DeviceAddress address,
                        std::size_t bytes) {
    state.give_access(address, bytes, device.number);
    for (const device::cuda::DeviceNumber reader : device.readers) {
        state.give_access(address, bytes, reader);
    }
}

/// Throws DeviceError unless the range consists of whole, adjacent mappings. REQUIRES: the device's
/// mapping lock.
void expect_whole_mappings(const CudaDevice& device, DeviceAddress address, std::size_t bytes) {
    DeviceAddress at = address;
    for (auto found = device.mappings.find(at);
         found != device.mappings.end() && found->first == at && at < address + bytes; ++found) {
        at += found->second;
    }
    if (at == address + bytes && bytes != 0) return;
    throw DeviceError(DeviceStatus::invalid_argument,
                      device::to_text(pointer_of(address)) + " and " + std::to_string(bytes) +
                          " bytes are not one or more whole mappings");
}

}  // namespace

DeviceStatus CudaBackend::reserve_addresses(int device, std::size_t bytes,
                                            void** address) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        DeviceAddress reserved = 0;
        state_->invoke(state_->api.address_reserve, &reserved, bytes, std::size_t{0},
                       DeviceAddress{0}, 0ULL);
        *address = pointer_of(reserved);
    });
}

DeviceStatus CudaBackend::release_addresses(int device, void* address, std::size_t bytes) noexcept {
    return state_->call(device, state_->api.address_free, address_of(address), bytes);
}

DeviceStatus CudaBackend::create_memory(int device, std::size_t bytes,
                                        MemoryHandle* memory) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        AllocationProperties properties;
        properties.location.id = its.number;
        MemoryNumber made = 0;
        state_->invoke(state_->api.memory_create, &made, bytes, &properties, 0ULL);
        *memory = reinterpret_cast<MemoryHandle>(static_cast<std::uintptr_t>(made));
    });
}

DeviceStatus CudaBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    return state_->call(device, state_->api.memory_release, memory);
}

DeviceStatus CudaBackend::map_memory(int device, void* address, std::size_t bytes,
                                     MemoryHandle memory) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        const DeviceAddress at = address_of(address);
        const std::lock_guard guard(its.mapping);
        state_->invoke(state_->api.memory_map, at, bytes, std::size_t{0}, memory, 0ULL);
        try {
            give_access_to_all(*state_, its, at, bytes);
            its.mappings.emplace(at, bytes);
        } catch (...) {
            state_->api.memory_unmap(at, bytes);
            throw;
        }
    });
}

// The driver unmaps one mapping a call.
DeviceStatus CudaBackend::unmap_memory(int device, void* address, std::size_t bytes) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        state_->expect(state_->api.memory_unmap);
        const DeviceAddress at = address_of(address);
        const std::lock_guard guard(its.mapping);
        expect_whole_mappings(its, at, bytes);
        for (auto found = its.mappings.find(at);
             found != its.mappings.end() && found->first < at + bytes;) {
            state_->invoke(state_->api.memory_unmap, found->first, found->second);
            found = its.mappings.erase(found);
        }
    });
}

}  // namespace tensorpool
