#include <tensorpool/device/caching_allocator.hpp>

#include <stdexcept>
#include <string>

#include "device/caching/caching_core.hpp"

namespace tensorpool {

CachingAllocator::CachingAllocator(Backend& backend, int device, const CachingOptions& options)
    : core_(std::make_unique<device::CachingCore>(backend, device, options)) {}

CachingAllocator::~CachingAllocator() = default;

Device CachingAllocator::device() const noexcept {
    return core_->device();
}

void* CachingAllocator::allocate(std::size_t bytes, StreamHandle stream) {
    stream = core_->key_of(stream);
    if (void* const block = core_->take_parked(bytes, stream)) [[likely]]
        return block;
    return core_->allocate_or_throw(bytes, stream);
}

void* CachingAllocator::try_allocate(std::size_t bytes, StreamHandle stream) noexcept {
    stream = core_->key_of(stream);
    if (void* const block = core_->take_parked(bytes, stream)) [[likely]]
        return block;
    try {
        return core_->allocate(bytes, stream, nullptr);
    } catch (...) {
        return nullptr;  // no memory for records
    }
}

void CachingAllocator::deallocate(void* block) noexcept {
    if (!core_->park(block)) [[unlikely]]
        core_->deallocate(block);
}

void CachingAllocator::record_use(void* block, StreamHandle stream) {
    if (block != nullptr) core_->record_use(block, core_->key_of(stream));
}

void* CachingAllocator::host_pointer(void* block) const noexcept {
    return core_->host_pointer(block);
}

SourceDevice CachingAllocator::memory_device() const noexcept {
    return core_->memory_device();
}

std::size_t CachingAllocator::usable_size(const void* block) const noexcept {
    return core_->usable_size(block);
}

bool CachingAllocator::is_used_on(const void* block, StreamHandle stream) const noexcept {
    return core_->is_used_on(block, core_->key_of(stream));
}

BlockIdentity CachingAllocator::identify(const void* block) const noexcept {
    return core_->identify(block);
}

DeviceStatistics CachingAllocator::statistics() const {
    return core_->statistics();
}

void* CachingAllocator::allocate_shareable(std::size_t bytes, StreamHandle stream) {
    return core_->allocate_shareable(bytes, core_->key_of(stream));
}

SharedBlock CachingAllocator::share(void* block) const {
    return core_->share(block);
}

std::size_t CachingAllocator::trim() noexcept {
    return core_->trim();
}

void CachingAllocator::set_hard_limit(double part) {
    core_->set_hard_limit(part);
}

void CachingAllocator::set_soft_limit(double part) {
    core_->set_soft_limit(part);
}

void* CachingAllocator::allocate_scalar(std::size_t bytes, StreamHandle stream) {
    if (bytes == 0 || bytes > device::ScalarPage::scalar_bytes) {
        throw std::invalid_argument("tensorpool: allocate_scalar: bytes is " +
                                    std::to_string(bytes) + "; expected 1 to 8");
    }
    DeviceAllocationFailure failure;
    void* const scalar = core_->allocate_scalar(bytes, core_->key_of(stream), &failure);
    if (scalar == nullptr) core_->refuse(failure);
    return scalar;
}

void* CachingAllocator::allocate_scalar(std::span<const std::byte> value, StreamHandle stream) {
    void* const scalar = allocate_scalar(value.size(), stream);
    try {
        core_->write(scalar, value, stream);
    } catch (...) {
        deallocate(scalar);
        throw;
    }
    return scalar;
}

std::size_t CachingAllocator::sleep(SleepContent content) {
    return core_->sleep(content);
}

void CachingAllocator::wake() {
    core_->wake();
}

void CachingAllocator::end_stream(StreamHandle stream) {
    core_->end_stream(core_->key_of(stream));
}

void CachingAllocator::add_callback(std::string name, AllocatorCallback callback) {
    core_->add_callback(std::move(name), std::move(callback));
}

bool CachingAllocator::remove_callback(std::string_view name) noexcept {
    return core_->remove_callback(name);
}

void CachingAllocator::reserve_for_capture(std::size_t bytes) {
    DeviceAllocationFailure failure;
    if (bytes != 0 && !core_->captures().reserve(bytes, failure)) core_->refuse(failure);
}

void CachingAllocator::begin_capture() noexcept {
    core_->captures().begin();
}

void CachingAllocator::end_capture() noexcept {
    core_->captures().end();
}

void CachingAllocator::begin_capture_pool(CapturePool pool,
                                          std::function<bool(StreamHandle)> takes_part) {
    core_->captures().begin_pool(pool, std::move(takes_part));
}

void CachingAllocator::end_capture_pool(CapturePool pool) {
    core_->captures().end_pool(pool);
}

void CachingAllocator::release_capture_pool(CapturePool pool) noexcept {
    core_->captures().release_pool(pool);
}

void CachingAllocator::release_capture(std::uint64_t id) {
    core_->captures().release(id);
}

}  // namespace tensorpool
