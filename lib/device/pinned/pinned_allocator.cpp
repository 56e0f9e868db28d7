#include <tensorpool/device/pinned_allocator.hpp>

#include "device/dlpack_devices.hpp"
#include "device/pinned/pinned_core.hpp"

namespace tensorpool {

PinnedAllocator::PinnedAllocator(Backend& backend, int device, const PinnedOptions& options)
    : core_(std::make_unique<device::PinnedCore>(backend, device, options)) {}

PinnedAllocator::~PinnedAllocator() = default;

Device PinnedAllocator::device() const noexcept {
    return core_->device();
}

void* PinnedAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (stream == nullptr) [[likely]] {
        if (void* const block = core_->take_parked(bytes)) [[likely]]
            return block;
    }
    DeviceAllocationFailure failure;
    void* const block = core_->allocate(bytes, stream, failure);
    if (block == nullptr && bytes != 0) core_->refuse(failure);
    return block;
}

void* PinnedAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept {
    if (stream == nullptr) [[likely]] {
        if (void* const block = core_->take_parked(bytes)) [[likely]]
            return block;
    }
    try {
        DeviceAllocationFailure failure;
        return core_->allocate(bytes, stream, failure);
    } catch (...) {
        return nullptr;  // no memory for records
    }
}

void PinnedAllocator::deallocate(void* block) noexcept {
    if (!core_->park(block)) [[unlikely]]
        core_->deallocate(block);
}

void PinnedAllocator::record_use(void* block, StreamHandle stream) {
    if (block != nullptr) core_->record_use(block, stream);
}

void* PinnedAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice PinnedAllocator::memory_device() const noexcept {
    if (device().type != DeviceType::cuda) return {};
    return {device::DlpackDeviceType::cuda_host, device().index};
}

std::size_t PinnedAllocator::usable_size(const void* block) const noexcept {
    return core_->usable_size(block);
}

bool PinnedAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    return core_->is_used_on(block, stream);
}

DeviceStatistics PinnedAllocator::statistics() const {
    return core_->statistics();
}

std::size_t PinnedAllocator::trim() noexcept {
    return core_->trim();
}

void PinnedAllocator::set_limit(std::size_t bytes) noexcept {
    core_->set_limit(bytes);
}

void PinnedAllocator::end_stream(StreamHandle stream) {
    core_->end_stream(stream);
}

}  // namespace tensorpool
