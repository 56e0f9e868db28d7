#include <tensorpool/device/cuda_backend.hpp>

#include "device/cuda/cuda_state.hpp"

namespace tensorpool {

using namespace device::cuda;

namespace {

void refuse_nothing(std::size_t bytes) {
    if (bytes == 0) throw DeviceError(DeviceStatus::invalid_argument, "0 bytes requested");
}

void expect_ability(bool there, const char* what) {
    if (!there) throw DeviceError(DeviceStatus::not_supported, what);
}

void expect_stream_order(const CudaDevice& device) {
    expect_ability(device.abilities.stream_ordered_allocation,
                   "the device or its driver has no stream-ordered allocation");
}

MemoryPool pool_of(CudaState& state, const CudaDevice& device) {
    expect_stream_order(device);
    MemoryPool pool = nullptr;
    state.invoke(state.api.default_pool, &pool, device.number);
    return pool;
}

std::size_t reserved_bytes(CudaState& state, MemoryPool pool) {
    std::uint64_t bytes = 0;
    state.invoke(state.api.pool_get, pool, MemoryPoolAttribute::reserved_bytes, &bytes);
    return static_cast<std::size_t>(bytes);
}

void expect_advice(const CudaDevice& device) {
    expect_ability(device.abilities.managed_advice,
                   "the device or its driver cannot move single pages of managed memory");
}

DeviceNumber number_of(const CudaDevice& device, Processor processor) {
    return processor == Processor::host ? host_number : device.number;
}

Advice driver_advice(MemoryAdvice advice) {
    // The driver has them in the same order, from 1 on.
    if (advice <= MemoryAdvice::not_accessed_by)
        return static_cast<Advice>(1 + static_cast<unsigned>(advice));
    throw DeviceError(DeviceStatus::invalid_argument,
                      "no such advice: " + std::to_string(static_cast<int>(advice)));
}

// The driver stores null when it fails.
DeviceStatus allocate_host(CudaState& state, std::size_t bytes, unsigned flags, void** memory) {
    void* made = nullptr;
    const DeviceStatus status = state.invoke(state.api.host_allocate, &made, bytes, flags);
    *memory = made;
    return status;
}

DeviceStatus allocate_kind(CudaState& state, const CudaDevice& device, std::size_t bytes,
                           StorageKind kind, void** memory) {
    if (kind == StorageKind::shared) {
        expect_ability(device.abilities.shared_storage, "the device has no shared storage");
        return allocate_host(state, bytes, host_alloc_portable | host_alloc_device_map, memory);
    }
    DeviceAddress address = 0;
    if (kind == StorageKind::managed) {
        expect_ability(device.abilities.managed_storage, "the device has no managed storage");
        state.invoke(state.api.memory_allocate_managed, &address, bytes, attach_global);
    } else {
        state.invoke(state.api.memory_allocate, &address, bytes);
    }
    *memory = pointer_of(address);
    return DeviceStatus::ok;
}

/// Mappings of equally large memories in a row, which are unmapped again unless they are kept.
class NewMappings {
public:
    /// REQUIRES: the device's mapping lock, for the life of the object.
    NewMappings(CudaState& state, CudaDevice& device, DeviceAddress address,
                std::size_t bytes) noexcept
        : state_(state), device_(device), address_(address), bytes_(bytes) {}
    ~NewMappings() {
        if (kept_) return;
        for (std::size_t i = 0; i < count_; ++i) {
            state_.api.memory_unmap(at(i), bytes_);
            device_.mappings.erase(at(i));
        }
    }
    NewMappings(const NewMappings&) = delete;
    NewMappings& operator=(const NewMappings&) = delete;

    void add(MemoryHandle memory) {
        state_.invoke(state_.api.memory_map, at(count_), bytes_, std::size_t{0}, memory, 0ULL);
        device_.mappings[at(count_++)] = bytes_;
    }
    /// Sets access for all of them at once: a call for each takes ten times as long. Source:
    /// PyTorch's pull request 96995.
    void keep() {
        state_.give_access(device_, address_, count_ * bytes_);
        kept_ = true;
    }

private:
    DeviceAddress at(std::size_t number) const noexcept { return address_ + number * bytes_; }

    CudaState& state_;
    CudaDevice& device_;
    const DeviceAddress address_;
    const std::size_t bytes_;
    std::size_t count_ = 0;
    bool kept_ = false;
};

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

MemoryHandle handle_of(MemoryNumber memory) noexcept {
    return reinterpret_cast<MemoryHandle>(static_cast<std::uintptr_t>(memory));
}

MemoryHandle create(CudaState& state, std::size_t bytes, const AllocationProperties& properties) {
    MemoryNumber made = 0;
    state.invoke(state.api.memory_create, &made, bytes, &properties, 0ULL);
    return handle_of(made);
}

}  // namespace

DeviceStatus CudaBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                   void** memory) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        refuse_nothing(bytes);
        return allocate_kind(*state_, its, bytes, kind, memory);
    });
}

DeviceStatus CudaBackend::deallocate(int device, void* memory, std::size_t,
                                     StorageKind kind) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        // The driver's reference leaves open what a free of 0 does.
        if (memory == nullptr) return DeviceStatus::ok;
        if (kind == StorageKind::shared) return state_->invoke(state_->api.host_free, memory);
        return state_->invoke(state_->api.memory_free, address_of(memory));
    });
}

DeviceStatus CudaBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                         void** memory) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        refuse_nothing(bytes);
        expect_stream_order(its);
        DeviceAddress address = 0;
        state_->invoke(state_->api.memory_allocate_async, &address, bytes, stream);
        *memory = pointer_of(address);
    });
}

DeviceStatus CudaBackend::deallocate_async(int device, void* memory, std::size_t,
                                           StreamHandle stream) noexcept {
    return state_->call(device, state_->api.memory_free_async, address_of(memory), stream);
}

DeviceStatus CudaBackend::set_release_threshold(int device, std::size_t bytes) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        std::uint64_t threshold = bytes;
        return state_->invoke(state_->api.pool_set, pool_of(*state_, its),
                              MemoryPoolAttribute::release_threshold, &threshold);
    });
}

DeviceStatus CudaBackend::trim_stream_ordered(int device, std::size_t& given_back) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        const MemoryPool pool = pool_of(*state_, its);
        const std::size_t before = reserved_bytes(*state_, pool);
        state_->invoke(state_->api.pool_trim, pool, std::size_t{0});
        // Other threads may have allocated meanwhile.
        given_back = before - std::min(before, reserved_bytes(*state_, pool));
    });
}

void* CudaBackend::host_pointer(int device, void* memory) noexcept {
    void* pointer = nullptr;
    // Called without `invoke`, because a missing host pointer is not an error.
    state_->run(device, [&](const CudaDevice&) {
        state_->api.pointer_attribute(&pointer, PointerAttribute::host_pointer, address_of(memory));
        return DeviceStatus::ok;
    });
    return pointer;
}

DeviceStatus CudaBackend::advise_memory(int device, void* memory, std::size_t bytes,
                                        MemoryAdvice advice, Processor processor) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        refuse_nothing(bytes);
        expect_advice(its);
        return state_->invoke(state_->api.memory_advise, address_of(memory), bytes,
                              driver_advice(advice), number_of(its, processor));
    });
}

DeviceStatus CudaBackend::prefetch_memory(int device, void* memory, std::size_t bytes,
                                          Processor processor, StreamHandle stream) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        refuse_nothing(bytes);
        expect_advice(its);
        return state_->invoke(state_->api.memory_prefetch, address_of(memory), bytes,
                              number_of(its, processor), stream);
    });
}

DeviceStatus CudaBackend::allocate_pinned(int device, std::size_t bytes, void** memory) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        refuse_nothing(bytes);
        return allocate_host(*state_, bytes, host_alloc_portable, memory);
    });
}

DeviceStatus CudaBackend::deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return deallocate(device, memory, bytes, StorageKind::shared);
}

DeviceStatus CudaBackend::register_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call(device, state_->api.host_register, memory, bytes, host_register_portable);
}

DeviceStatus CudaBackend::unregister_pinned(int device, void* memory) noexcept {
    return state_->call(device, state_->api.host_unregister, memory);
}

DeviceStatus CudaBackend::reserve_addresses(int device, std::size_t bytes,
                                            void** address) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        DeviceAddress reserved = 0;
        // The alignment is named, because the reference does not say what the default is.
        state_->invoke(state_->api.address_reserve, &reserved, bytes, its.abilities.granularity,
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
        *memory = create(*state_, bytes, properties);
    });
}

// Memory for RDMA may be refused where other memory is not, for example because the card's window
// to the bus is full, so a second call goes without. Source: "CUDA Driver API",
// CUmemAllocationProp; NCCL and PyTorch set the flag by the same attribute.
DeviceStatus CudaBackend::create_exportable_memory(int device, std::size_t bytes,
                                                   MemoryHandle* memory) noexcept {
    return state_->run(device, [&](const CudaDevice& its) {
        AllocationProperties properties;
        properties.location.id = its.number;
        properties.requested_handle_types = HandleType::file_descriptor;
        if (its.has_rdma) {
            properties.gpu_direct_rdma_capable = 1;
            try {
                *memory = create(*state_, bytes, properties);
                return;
            } catch (const DeviceError& error) {
                if (error.status() == DeviceStatus::device_lost) throw;
            }
            properties.gpu_direct_rdma_capable = 0;
        }
        *memory = create(*state_, bytes, properties);
    });
}

DeviceStatus CudaBackend::export_memory(int device, MemoryHandle memory, int* file) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        int made = -1;
        state_->invoke(state_->api.memory_export, static_cast<void*>(&made), memory,
                       HandleType::file_descriptor, 0ULL);
        *file = made;
    });
}

// The driver takes the number of the descriptor as a pointer.
DeviceStatus CudaBackend::import_memory(int device, int file, MemoryHandle* memory) noexcept {
    return state_->run(device, [&](const CudaDevice&) {
        state_->expect(state_->api.memory_import);
        // The driver reports this as a failure of the operating system.
        if (file < 0) {
            throw DeviceError(DeviceStatus::invalid_argument,
                              "the file descriptor is " + std::to_string(file));
        }
        MemoryNumber made = 0;
        void* const descriptor = reinterpret_cast<void*>(static_cast<std::intptr_t>(file));
        state_->invoke(state_->api.memory_import, &made, descriptor, HandleType::file_descriptor);
        *memory = handle_of(made);
    });
}

DeviceStatus CudaBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    return state_->call(device, state_->api.memory_release, memory);
}

DeviceStatus CudaBackend::map_memory(int device, void* address, std::size_t bytes,
                                     MemoryHandle memory) noexcept {
    return map_memories(device, address, bytes, {&memory, 1});
}

DeviceStatus CudaBackend::map_memories(int device, void* address, std::size_t bytes,
                                       std::span<const MemoryHandle> memories) noexcept {
    return state_->run(device, [&](CudaDevice& its) {
        state_->expect(state_->api.memory_map);
        const std::lock_guard guard(its.mapping);
        NewMappings mappings(*state_, its, address_of(address), bytes);
        for (const MemoryHandle memory : memories) mappings.add(memory);
        mappings.keep();
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
