#include <tensorpool/device/backend.hpp>

#include <charconv>

#include <tensorpool/device/device_allocator.hpp>

#include "device/call_errors.hpp"
#include "device/device_types.hpp"

namespace tensorpool {
namespace {

DeviceAllocator& allocator_at(void* source) noexcept {
    return *static_cast<DeviceAllocator*>(source);
}

constexpr SourceFunctions allocator_functions = {
    .name = "device allocator",
    .give_back = [](void* source,
                    const HeldBlock& block) { allocator_at(source).deallocate(block.address); },
    .host_pointer =
        [](void* source, const HeldBlock& block) {
            return allocator_at(source).host_pointer(block.address);
        },
    .device = [](void* source) { return allocator_at(source).memory_device(); },
};

}  // namespace

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

const char* to_string(DeviceType type) noexcept {
    return device::device_types().name_of(type);
}

std::string to_string(Device device) {
    return std::string(to_string(device.type)) + ':' + std::to_string(device.index);
}

Device parse_device(const std::string& text) {
    const std::size_t colon = text.find(':');
    const std::string_view type = std::string_view(text).substr(0, colon);
    if (const std::optional<DeviceType> found = device::device_types().find(type)) {
        Device device = {*found, 0};
        if (colon == std::string::npos) return device;
        const char* const end = text.data() + text.size();
        const char* const digits = text.data() + colon + 1;
        const auto [rest, error] = std::from_chars(digits, end, device.index);
        if (error == std::errc() && rest == end && device.index >= 0) return device;
    }
    throw std::invalid_argument("tensorpool: \"" + text + "\" is not a device: expected " +
                                device::device_types().list() +
                                ", optionally followed by a colon and an index, such as cuda:1");
}

DeviceAllocator::~DeviceAllocator() = default;

HeldBlock DeviceAllocator::hold(std::size_t bytes, StreamHandle stream) {
    void* const block = allocate(bytes, stream);
    if (block == nullptr) return {};
    constexpr std::size_t alignment = 256;
    return {block, bytes, BlockOwner(this, allocator_functions, alignment)};
}

void* DeviceAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept try {
    return allocate(bytes, stream);
} catch (...) {
    return nullptr;
}

void* DeviceAllocator::host_pointer(void* block) const noexcept {
    return device().type == DeviceType::cpu ? block : nullptr;
}

SourceDevice DeviceAllocator::memory_device() const noexcept {
    return device::dlpack_device(device());
}

const char* to_string(CopyKind kind) noexcept {
    return device::text_of({"host to host", "host to device", "device to host", "device to device"},
                           kind);
}

}  // namespace tensorpool
