#include <tensorpool/device/host_allocator.hpp>

#include <tensorpool/device/device_allocation_error.hpp>

#include <utility>

#include "device/runtime/host_blocks.hpp"

namespace tensorpool {

HostAllocator::HostAllocator(Backend& backend, Device device,
                             std::shared_ptr<HostMemorySource> source)
    : blocks_(std::make_unique<device::HostBlocks>(backend, device, std::move(source))) {}
HostAllocator::~HostAllocator() = default;

Device HostAllocator::device() const noexcept {
    return blocks_->device();
}

void* HostAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    if (bytes == 0) return nullptr;
    void* const block = blocks_->allocate(bytes, stream);
    if (block == nullptr) [[unlikely]]
        blocks_->fail(bytes);
    return block;
}

void* HostAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept {
    try {
        return allocate(bytes, stream);
    } catch (...) {
        return nullptr;
    }
}

void HostAllocator::deallocate(void* block) noexcept {
    if (block != nullptr) blocks_->deallocate(block);
}

void HostAllocator::record_use(void* block, StreamHandle stream) {
    blocks_->record_use(block, stream);
}

void* HostAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice HostAllocator::memory_device() const noexcept {
    return {};
}

std::size_t HostAllocator::usable_size(const void* block) const noexcept {
    return blocks_->size_of(block);
}

bool HostAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    return blocks_->is_used_on(block, stream);
}

DeviceStatistics HostAllocator::statistics() const {
    return blocks_->statistics();
}

std::size_t HostAllocator::trim() noexcept {
    return blocks_->trim();
}

void HostAllocator::end_stream(StreamHandle stream) {
    blocks_->end_stream(stream);
}

}  // namespace tensorpool
