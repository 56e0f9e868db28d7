#include <tensorpool/device/device_status.hpp>

#include <cstdio>

#include "device/caching/caching_core.hpp"
#include "platform/fail.hpp"

// What comes back otherwise than into its stream's bins, and what is told of a block in use.

namespace tensorpool::device {
namespace {

const char* state_text(BlockState state) noexcept {
    switch (state) {
        case BlockState::free:
        case BlockState::parked:
        case BlockState::taken:
        case BlockState::hole:
            return "is free already";
        case BlockState::leaving:
        case BlockState::deferred:
            return "was freed already, and waits for streams";
        case BlockState::scalars:
            return "holds scalars, none of which begins there or is in use";
        case BlockState::in_use:
        case BlockState::shared:
            return "begins elsewhere";
    }
    return "?";
}

}  // namespace

void CachingCore::refuse_free(const void* address, const Block* block) const noexcept {
    const std::string owner = options_.name + " on " + to_string(device());
    if (block == nullptr) {
        platform::fail("%s: deallocate: %p is no block of this allocator", owner.c_str(), address);
    }
    platform::fail("%s: deallocate: %p: the block of %zu B at %p %s", owner.c_str(), address,
                   block->bytes, static_cast<const void*>(block->address),
                   state_text(block->state.load(std::memory_order_relaxed)));
}

void CachingCore::deallocate(void* address) noexcept {
    if (address == nullptr) return;
    statistics::look_for_recorder();
    Lock lock(mutex_);
    Block* const block = heap_.find(address);
    if (block != nullptr && block->is(BlockState::scalars)) {
        return free_scalar(*block, address, lock);
    }
    if (block == nullptr || block->address != address) refuse_free(address, block);
    {
        StreamCache& home = *block->home.load(std::memory_order_relaxed);
        const std::lock_guard guard(home);
        if (!block->is(BlockState::in_use) && !block->is(BlockState::shared)) {
            refuse_free(address, block);
        }
        block->set(BlockState::leaving);
        home.count_free(block->requested, block->bytes);
    }
    if (is_watched()) {
        const StreamHandle stream = block->home.load(std::memory_order_relaxed)->stream();
        const bool deferred = block->uses != nullptr;
        lock.unlock();
        watch_.freed({block->address, block->bytes, block->requested, stream, deferred});
        lock.lock();
    }
    if (!deferred_.is_empty()) {
        complete(capture_of(block->home.load(std::memory_order_relaxed)->stream()));
    }
    park_again(*block);
}

void CachingCore::park_again(Block& block) noexcept {
    if (block.uses != nullptr) return deferred_.defer(block);
    // Under the allocator's lock it has no other home meanwhile.
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    const std::lock_guard guard(home);
    home.park(block);
}

/// Throws DeviceError where there is none.
Block& CachingCore::block_in_use(void* address, const char* call) const {
    Block* const block = heap_.find(address);
    if (block != nullptr && block->is(BlockState::scalars) && has_scalar(*block, address)) {
        return *block;
    }
    const bool in_use = block != nullptr && block->address == address &&
                        (block->is(BlockState::in_use) || block->is(BlockState::shared));
    if (in_use) return *block;
    char text[160];
    std::snprintf(text, sizeof text, "tensorpool: %.47s on %s: %s: %p is no block in use",
                  options_.name.c_str(), to_string(device()).c_str(), call, address);
    throw DeviceError(DeviceStatus::invalid_argument, text);
}

void CachingCore::record_use(void* address, StreamHandle stream) {
    Lock lock(mutex_);
    Block& block = block_in_use(address, "record_use");
    StreamCache& home = *block.home.load(std::memory_order_relaxed);
    if (home.stream() == stream) return;
    const bool is_new = deferred_.add_use(block, cache_of(stream, 0));
    detail::add(totals_.cross_stream_uses, 1);
    if (block.is(BlockState::scalars)) {
        close_page(block);
        lock.unlock();
        return watch_.used({address, ScalarPage::place_bytes, ScalarPage::place_bytes, stream});
    }
    {
        const std::lock_guard guard(home);
        block.set(BlockState::shared);
    }
    const AllocatorWatch::Seen seen = {block.address, block.bytes, block.requested, stream};
    lock.unlock();
    if (is_new) watch_.used(seen);
}

std::size_t CachingCore::usable_size(const void* address) const noexcept {
    const Block* const block = heap_.find(address);
    if (block == nullptr) return 0;
    if (block->is(BlockState::scalars)) {
        const Lock lock(mutex_);
        return has_scalar(*block, address) ? ScalarPage::place_bytes : 0;
    }
    const bool in_use = block->address == address &&
                        (block->is(BlockState::in_use) || block->is(BlockState::shared));
    return in_use ? block->bytes : 0;
}

bool CachingCore::is_used_on(const void* address, StreamHandle stream) const noexcept {
    if (usable_size(address) == 0) return false;
    const Lock lock(mutex_);
    const Block& block = *heap_.find(address);
    return block.home.load(std::memory_order_relaxed)->stream() == stream ||
           DeferredFrees::has_use(block, stream);
}

}  // namespace tensorpool::device
