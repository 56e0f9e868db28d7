#include <tensorpool/device/device_allocator.hpp>

#include "device/dlpack_devices.hpp"

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

DeviceAllocator::~DeviceAllocator() = default;

HeldBlock DeviceAllocator::hold(std::size_t bytes, StreamHandle stream) {
    void* const block = allocate(bytes, stream);
    if (block == nullptr) return {};
    constexpr std::size_t alignment = 256;
    return {block, bytes, BlockOwner(this, allocator_functions, alignment)};
}

void* DeviceAllocator::host_pointer(void* block) const noexcept {
    return device().type == DeviceType::cpu ? block : nullptr;
}

SourceDevice DeviceAllocator::memory_device() const noexcept {
    return device::dlpack_device(device());
}

}  // namespace tensorpool
