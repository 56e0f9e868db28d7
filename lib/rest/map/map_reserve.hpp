#pragma once

#include <algorithm>
#include <mutex>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool::stashing {

/// While it exists, the thread requests memory of a pool for a map that uses it. What the map then
/// gives need not leave the pool.
class OwnRequest {
public:
    explicit OwnRequest(const MemoryPool& pool) noexcept : outer_(std::exchange(current_, &pool)) {}
    ~OwnRequest() { current_ = outer_; }
    OwnRequest(const OwnRequest&) = delete;
    OwnRequest& operator=(const OwnRequest&) = delete;

    static bool is_for(const MemoryPool& pool) noexcept { return current_ == &pool; }

private:
    static constinit inline thread_local const MemoryPool* current_ TENSORPOOL_INITIAL_EXEC =
        nullptr;
    const MemoryPool* outer_;
};

inline bool is_of(const PooledAllocation& block, const MemoryPool& pool) noexcept {
    return block && block.held().owner.pool() == &pool;
}

/// A block that a map keeps, so that it can compress a tensor while its budget has no room.
/// Thread-safe. It allocates and frees outside its lock, which is a leaf.
class MapReserve {
public:
    /// Sets the size to `bytes` if that is more than before.
    void grow_to(std::size_t bytes) noexcept {
        const std::lock_guard guard(mutex_);
        wanted_ = std::max(wanted_, bytes);
    }
    /// Frees the block. Returns the memory that it took.
    std::size_t free() noexcept {
        PooledAllocation freed;
        const std::lock_guard guard(mutex_);
        freed = std::move(block_);
        return freed.size();
    }
    /// Makes a block of `pool` the reserve if there is none of the wanted size: `block`, which may
    /// be none, or another one. Otherwise frees it. Returns the memory that was added to the
    /// reserve. Does nothing if there is no memory.
    std::size_t refill(MemoryPool& pool, PooledAllocation block) noexcept {
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

    // Around forks.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    std::mutex mutex_;
    std::size_t wanted_ = 0;
    PooledAllocation block_;
};

/// Returns the bytes of a pool's memory that a block takes; 0 for none.
inline std::size_t usable_bytes(const PooledAllocation& block) noexcept {
    if (!block) return 0;
    return static_cast<MemoryPool*>(block.held().owner.pool())->usable_size(block.get());
}

}  // namespace tensorpool::stashing
