#include <tensorpool/device/backend.hpp>

#include "device/call_errors.hpp"

namespace tensorpool {

// Defaults of the optional functions, for backends that do not implement them.

Backend::~Backend() = default;

DeviceStatus Backend::settle_memory(int) noexcept {
    return DeviceStatus::ok;
}

DeviceStatus Backend::allocate_async(int, std::size_t, StreamHandle, void**) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::deallocate_async(int, void*, std::size_t, StreamHandle) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::set_release_threshold(int, std::size_t) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::trim_stream_ordered(int, std::size_t&) noexcept {
    return DeviceStatus::not_supported;
}
void* Backend::host_pointer(int, void*) noexcept {
    return nullptr;
}

DeviceStatus Backend::advise_memory(int, void*, std::size_t, MemoryAdvice, Processor) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::prefetch_memory(int, void*, std::size_t, Processor, StreamHandle) noexcept {
    return DeviceStatus::not_supported;
}

DeviceStatus Backend::reserve_addresses(int, std::size_t, void**) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::release_addresses(int, void*, std::size_t) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::create_memory(int, std::size_t, MemoryHandle*) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::create_exportable_memory(int, std::size_t, MemoryHandle*) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::export_memory(int, MemoryHandle, int*) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::import_memory(int, int, MemoryHandle*) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::destroy_memory(int, MemoryHandle) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::map_memory(int, void*, std::size_t, MemoryHandle) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::map_memories(int device, void* address, std::size_t bytes,
                                   std::span<const MemoryHandle> memories) noexcept {
    auto* const begin = static_cast<std::byte*>(address);
    for (std::size_t mapped = 0; mapped < memories.size(); ++mapped) {
        const DeviceStatus status =
            map_memory(device, begin + mapped * bytes, bytes, memories[mapped]);
        if (status == DeviceStatus::ok) continue;
        if (mapped != 0) (void)unmap_memory(device, begin, mapped * bytes);
        return status;
    }
    return DeviceStatus::ok;
}
DeviceStatus Backend::unmap_memory(int, void*, std::size_t) noexcept {
    return DeviceStatus::not_supported;
}

DeviceStatus Backend::register_pinned(int, void*, std::size_t) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::unregister_pinned(int, void*) noexcept {
    return DeviceStatus::not_supported;
}

bool Backend::owns_stream(int, StreamHandle) noexcept {
    return true;
}
DeviceStatus Backend::stream_id(int, StreamHandle, std::uint64_t*) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::stream_priorities(int, StreamPriorities& priorities) noexcept {
    priorities = {};
    return DeviceStatus::ok;
}

bool Backend::can_access_peer(int, int) noexcept {
    return false;
}
DeviceStatus Backend::enable_peer_access(int, int) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::copy_peer_async(int, void*, int, const void*, std::size_t,
                                      StreamHandle) noexcept {
    return DeviceStatus::not_supported;
}

DeviceStatus Backend::begin_capture(int, StreamHandle) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::end_capture(int, StreamHandle, GraphHandle*) noexcept {
    return DeviceStatus::not_supported;
}
const std::atomic<unsigned>& Backend::captures_under_way() const noexcept {
    static constinit std::atomic<unsigned> none = 0;
    return none;
}
DeviceStatus Backend::capture_state(int, StreamHandle, CaptureState& state) noexcept {
    state = {};
    return DeviceStatus::ok;
}
DeviceStatus Backend::launch_graph(int, GraphHandle, StreamHandle) noexcept {
    return DeviceStatus::not_supported;
}
DeviceStatus Backend::destroy_graph(int, GraphHandle) noexcept {
    return DeviceStatus::not_supported;
}

void Backend::note_block(const BlockNote&) noexcept {}

const char* to_string(CopyKind kind) noexcept {
    return device::text_of({"host to host", "host to device", "device to host", "device to device"},
                           kind);
}

}  // namespace tensorpool
