#include <tensorpool/device/device_memory.hpp>

#include <utility>

#include "base/never_destroyed.hpp"
#include "device/runtime/check_shape.hpp"

namespace tensorpool {
namespace {

/// The target of handles that own nothing. Never changed, and never destroyed.
struct Nothing {
    DeviceAllocation allocation;
    MemoryShape shape;
};

Nothing& nothing() noexcept {
    static base::NeverDestroyed<Nothing> only;
    return only.get();
}

}  // namespace

DeviceMemory::DeviceMemory(std::size_t bytes, std::optional<StreamHandle> stream)
    : DeviceMemory(DeviceAllocation(bytes, stream)) {}

DeviceMemory::DeviceMemory(Runtime& runtime, std::size_t bytes, std::optional<StreamHandle> stream,
                           MemoryKind kind)
    : DeviceMemory(DeviceAllocation(runtime, bytes, stream, kind)) {}

DeviceMemory::DeviceMemory(DeviceAllocation&& allocation)
    : allocation_(std::make_shared<DeviceAllocation>(std::move(allocation))) {
    if (allocation_->shape() != MemoryShape{}) {
        shape_ = std::make_shared<const MemoryShape>(allocation_->shape());
    }
}

const DeviceAllocation& DeviceMemory::allocation() const noexcept {
    return allocation_ != nullptr ? *allocation_ : nothing().allocation;
}

// For a handle without memory, operations on the empty allocation do nothing or throw.
DeviceAllocation& DeviceMemory::own() noexcept {
    return allocation_ != nullptr ? *allocation_ : nothing().allocation;
}

void DeviceMemory::set(std::size_t offset, std::span<const std::byte> bytes) {
    own().set(offset, bytes);
}

void DeviceMemory::get(std::size_t offset, std::span<std::byte> bytes) const {
    allocation().get(offset, bytes);
}

void DeviceMemory::fill(std::uint8_t byte) {
    own().fill(byte);
}

void DeviceMemory::copy_from(const DeviceMemory& other) {
    own().copy_from(other.allocation());
}

void DeviceMemory::record_use(StreamHandle stream) {
    own().record_use(stream);
}

void DeviceMemory::set_shape(MemoryShape shape) {
    device::check_shape(shape, size());
    shape_ = std::make_shared<const MemoryShape>(std::move(shape));
}

const MemoryShape& DeviceMemory::shape() const noexcept {
    return shape_ != nullptr ? *shape_ : nothing().shape;
}

}  // namespace tensorpool
