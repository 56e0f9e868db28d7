#include "rest/map/map_reserve.hpp"

#include <algorithm>

namespace tensorpool::stashing {
namespace {

bool is_of(const PooledAllocation& block, const MemoryPool& pool) noexcept {
    return block && block.held().owner.pool() == &pool;
}

}  // namespace

std::size_t usable_bytes(const PooledAllocation& block) noexcept {
    if (!block) return 0;
    return static_cast<MemoryPool*>(block.held().owner.pool())->usable_size(block.get());
}

void MapReserve::grow_to(std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    wanted_ = std::max(wanted_, bytes);
}

std::size_t MapReserve::free() noexcept {
    PooledAllocation freed;
    const std::lock_guard guard(mutex_);
    freed = std::move(block_);
    return freed.size();
}

std::size_t MapReserve::refill(MemoryPool& pool, PooledAllocation block) noexcept {
    std::unique_lock lock(mutex_);
    const std::size_t wanted = wanted_;
    const std::size_t present = block_.size();
    lock.unlock();
    if (present >= wanted) return 0;
    // A block of up to twice the size is kept: freeing it would only move its pages.
    if (!is_of(block, pool) || block.size() < wanted || block.size() / 2 > wanted) {
        block.reset();
        try {
            const OwnRequest own(pool);
            block = PooledAllocation(pool, wanted);
        } catch (const AllocationError&) {
            return 0;
        }
    }
    lock.lock();
    if (block_.size() < block.size()) block_.swap(block);
    const std::size_t added = block_.size() - std::min(block_.size(), block.size());
    lock.unlock();
    return added;
}

}  // namespace tensorpool::stashing
