#include "device/pinned/pinned_core.hpp"

namespace tensorpool {

using namespace device;

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
    if (block == nullptr && bytes != 0) throw_failure(failure, core_->backend_);
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
    if (block == nullptr) return;
    const std::lock_guard guard(core_->mutex_);
    Block* const found = core_->heap_.find(block);
    if (!is_in_use(found, block))
        throw_not_in_use(core_->options_.name, core_->device(), "record_use", block);
    core_->add_use(*found, stream);
    detail::add(core_->totals_.cross_stream_uses, 1);
}

void* PinnedAllocator::host_pointer(void* block) const noexcept {
    return block;
}

SourceDevice PinnedAllocator::memory_device() const noexcept {
    if (device().type != DeviceType::cuda) return {};
    return {device::DlpackDeviceType::cuda_host, device().index};
}

std::size_t PinnedAllocator::usable_size(const void* block) const noexcept {
    const Block* const found = core_->heap_.find(block);
    return is_in_use(found, block) ? found->bytes : 0;
}

bool PinnedAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    const std::lock_guard guard(core_->mutex_);
    const Block* const found = core_->heap_.find(block);
    return is_in_use(found, block) && DeferredFrees::has_use(*found, stream);
}

DeviceStatistics PinnedAllocator::statistics() const {
    return core_->record_.statistics();
}

std::size_t PinnedAllocator::trim() noexcept {
    const std::lock_guard guard(core_->mutex_);
    core_->complete();
    core_->flush();
    return core_->give_back();
}

void PinnedAllocator::set_limit(std::size_t bytes) noexcept {
    const std::lock_guard guard(core_->mutex_);
    detail::add(core_->totals_.limit_bytes, bytes - core_->limit_);
    core_->limit_ = bytes;
    if (core_->may_grow(0)) return;
    core_->complete();
    core_->flush();
    (void)core_->give_back();
}

void PinnedAllocator::end_stream(StreamHandle stream) {
    wait_for(core_->backend_, core_->device(), stream, core_->options_.name);
    const std::lock_guard guard(core_->mutex_);
    StreamCache* const known = core_->streams_.find(stream);
    if (known == nullptr) return;
    StreamQueue& queue = known->memory.queue;
    forget_uses(core_->deferred_, core_->slabs_, queue);
    core_->complete();
    core_->deferred_.end(
        queue, core_->mutex_,
        [&] { wait_for(core_->backend_, core_->device(), stream, core_->options_.name); },
        [&](DeferrableBlock& block) {
            core_->heap_.put_back(static_cast<Block&>(block), idle_stamp);
        });
}

}  // namespace tensorpool
