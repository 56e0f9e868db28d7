// Memory of the CPU: plain, virtual and pinned.

#include <string>
#include <utility>

#include "device/host/host_state.hpp"

namespace tensorpool {

using device::HostStream;

namespace {

constexpr device::HostMemory::Kind pinned_kind = 0;

device::HostMemory::Kind number_of(StorageKind kind) {
    if (kind <= StorageKind::managed) return static_cast<device::HostMemory::Kind>(kind);
    throw DeviceError(DeviceStatus::invalid_argument,
                      "storage kind " + std::to_string(static_cast<int>(kind)) + " is unknown");
}

void check_advised(const void* memory, std::size_t bytes) {
    if (memory != nullptr && bytes != 0) return;
    device::refuse("found " + std::to_string(bytes) + " B at " + device::to_text(memory) +
                   ", expected memory");
}

}  // namespace

// Memory -----------------------------------------------------------------------------------------

DeviceStatus HostBackend::allocate(int device, std::size_t bytes, StorageKind kind,
                                   void** memory) noexcept {
    return state_->call("allocate", device, [&] {
        state_->captures.check_thread();
        *memory = state_->memory.allocate(bytes, number_of(kind));
    });
}

DeviceStatus HostBackend::deallocate(int device, void* memory, std::size_t bytes,
                                     StorageKind kind) noexcept {
    return state_->call("deallocate", device,
                        [&] { state_->memory.deallocate(memory, bytes, number_of(kind)); });
}

DeviceStatus HostBackend::allocate_async(int device, std::size_t bytes, StreamHandle stream,
                                         void** memory) noexcept {
    return state_->call("allocate_async", device, [&] {
        state_->captures.check_thread();
        state_->captures.check_stream(state_->streams.find(stream));
        *memory = state_->memory.allocate(bytes, number_of(StorageKind::private_storage));
    });
}

DeviceStatus HostBackend::deallocate_async(int device, void* memory, std::size_t bytes,
                                           StreamHandle stream) noexcept {
    return state_->call("deallocate_async", device, [&] {
        HostStream& worker = state_->streams.find(stream);
        state_->captures.check_stream(worker);
        auto leaving =
            state_->memory.begin_leave(memory, bytes, number_of(StorageKind::private_storage));
        try {
            worker.give_or_do([memory, bytes] { device::HostMemory::end(memory, bytes); });
        } catch (...) {
            state_->memory.resume(std::move(leaving));
            throw;
        }
    });
}

DeviceStatus HostBackend::set_release_threshold(int device, std::size_t) noexcept {
    return state_->call("set_release_threshold", device, [] {});
}

DeviceStatus HostBackend::trim_stream_ordered(int device, std::size_t& given_back) noexcept {
    return state_->call("trim_stream_ordered", device, [&] { given_back = 0; });
}

void* HostBackend::host_pointer(int device, void* memory) noexcept {
    return device == 0 ? memory : nullptr;
}

DeviceStatus HostBackend::advise_memory(int device, void* memory, std::size_t bytes, MemoryAdvice,
                                        Processor) noexcept {
    return state_->call("advise_memory", device, [&] { check_advised(memory, bytes); });
}

DeviceStatus HostBackend::prefetch_memory(int device, void* memory, std::size_t bytes, Processor,
                                          StreamHandle stream) noexcept {
    return state_->call("prefetch_memory", device, [&] {
        state_->captures.check_stream(state_->streams.find(stream));
        check_advised(memory, bytes);
    });
}

// Virtual memory ---------------------------------------------------------------------------------

DeviceStatus HostBackend::reserve_addresses(int device, std::size_t bytes,
                                            void** address) noexcept {
    return state_->call_virtual("reserve_addresses", device,
                                [&] { *address = state_->virtual_memory.reserve(bytes); });
}

DeviceStatus HostBackend::release_addresses(int device, void* address, std::size_t bytes) noexcept {
    return state_->call_virtual("release_addresses", device,
                                [&] { state_->virtual_memory.release(address, bytes); });
}

DeviceStatus HostBackend::create_memory(int device, std::size_t bytes,
                                        MemoryHandle* memory) noexcept {
    return state_->call_virtual("create_memory", device,
                                [&] { *memory = state_->virtual_memory.create(bytes); });
}

DeviceStatus HostBackend::destroy_memory(int device, MemoryHandle memory) noexcept {
    return state_->call_virtual("destroy_memory", device,
                                [&] { state_->virtual_memory.destroy(memory); });
}

DeviceStatus HostBackend::map_memory(int device, void* address, std::size_t bytes,
                                     MemoryHandle memory) noexcept {
    return state_->call_virtual("map_memory", device,
                                [&] { state_->virtual_memory.map(address, bytes, memory); });
}

DeviceStatus HostBackend::unmap_memory(int device, void* address, std::size_t bytes) noexcept {
    return state_->call_virtual("unmap_memory", device,
                                [&] { state_->virtual_memory.unmap(address, bytes); });
}

// Pinned host memory -----------------------------------------------------------------------------

DeviceStatus HostBackend::allocate_pinned(int device, std::size_t bytes, void** memory) noexcept {
    return state_->call("allocate_pinned", device,
                        [&] { *memory = state_->pinned.allocate(bytes, pinned_kind); });
}

DeviceStatus HostBackend::deallocate_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call("deallocate_pinned", device,
                        [&] { state_->pinned.deallocate(memory, bytes, pinned_kind); });
}

DeviceStatus HostBackend::register_pinned(int device, void* memory, std::size_t bytes) noexcept {
    return state_->call("register_pinned", device,
                        [&] { state_->pinned.add_foreign(memory, bytes); });
}

DeviceStatus HostBackend::unregister_pinned(int device, void* memory) noexcept {
    return state_->call("unregister_pinned", device,
                        [&] { state_->pinned.remove_foreign(memory); });
}

}  // namespace tensorpool
