#pragma once

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

/// Returns the bytes of a pool's memory that a block takes; 0 for none.
std::size_t usable_bytes(const PooledAllocation& block) noexcept;

/// A block that a map keeps, so that it can compress a tensor while its budget has no room.
/// Thread-safe. It allocates and frees outside its lock, which is a leaf.
class MapReserve {
public:
    /// Sets the size to `bytes` if that is more than before.
    void grow_to(std::size_t bytes) noexcept;
    /// Frees the block. Returns the memory that it took.
    std::size_t free() noexcept;
    /// Makes a block of `pool` the reserve if there is none of the wanted size: `block`, which may
    /// be none, or another one. Otherwise frees it. Returns the memory that was added to the
    /// reserve. Does nothing if there is no memory.
    std::size_t refill(MemoryPool& pool, PooledAllocation block) noexcept;

    // Around forks.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    std::mutex mutex_;
    std::size_t wanted_ = 0;
    PooledAllocation block_;
};

}  // namespace tensorpool::stashing
