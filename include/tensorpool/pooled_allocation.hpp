#pragma once

/// @file
/// A handle that owns a block of a pool.

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Owns one block of a pool and frees it when destroyed. Move-only. One thread at a time may use a
/// handle. The pool must outlive it.
class PooledAllocation {
public:
    /// Makes a handle that owns nothing.
    PooledAllocation() noexcept = default;
    /// Allocates `bytes` bytes from the global pool, aligned to 64; owns nothing for 0. Throws
    /// AllocationError if the pool cannot meet the request.
    explicit PooledAllocation(std::size_t bytes)
        : PooledAllocation(get_global_memory_pool(), bytes) {}
    /// Allocates `bytes` bytes from `pool`, aligned to `alignment`, a power of two; owns nothing
    /// for 0. Throws AllocationError if the pool cannot meet the request, and std::invalid_argument
    /// for any other alignment.
    PooledAllocation(MemoryPool& pool, std::size_t bytes, std::size_t alignment = 64)
        : pool_(&pool),
          block_(pool.allocate(bytes, alignment)),
          bytes_(bytes),
          alignment_(alignment) {}
    /// Frees the block.
    ~PooledAllocation() { reset(); }

    /// Takes the block of `other`, which then owns nothing.
    PooledAllocation(PooledAllocation&& other) noexcept
        : pool_(other.pool_),
          block_(std::exchange(other.block_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          alignment_(other.alignment_) {}
    /// Frees the present block and takes the block of `other`, which then owns nothing.
    PooledAllocation& operator=(PooledAllocation&& other) noexcept {
        PooledAllocation moved(std::move(other));
        swap(moved);
        return *this;
    }
    PooledAllocation(const PooledAllocation&) = delete;
    PooledAllocation& operator=(const PooledAllocation&) = delete;

    /// Returns the block's address; nullptr if the handle owns nothing.
    void* get() const noexcept { return block_; }
    /// Returns the requested bytes; 0 if the handle owns nothing.
    std::size_t size() const noexcept { return bytes_; }
    /// Returns whether the handle owns a block.
    explicit operator bool() const noexcept { return block_ != nullptr; }

    /// Returns the block as `size() / sizeof(T)` elements. The caller must have written them before
    /// reading them.
    template <class T>
    std::span<T> as() const noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "PooledArray holds other types");
        return {static_cast<T*>(block_), bytes_ / sizeof(T)};
    }

    /// Returns the block and gives up its ownership. The caller frees it by `deallocate(p)` of the
    /// same pool.
    [[nodiscard]] void* release() noexcept {
        bytes_ = 0;
        return std::exchange(block_, nullptr);
    }
    /// Frees the block now.
    void reset() noexcept {
        if (block_ == nullptr) return;
        pool_->deallocate(block_, bytes_, alignment_);
        block_ = nullptr;
        bytes_ = 0;
    }
    /// Exchanges the blocks of two handles.
    void swap(PooledAllocation& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(block_, other.block_);
        std::swap(bytes_, other.bytes_);
        std::swap(alignment_, other.alignment_);
    }

private:
    MemoryPool* pool_ = nullptr;
    void* block_ = nullptr;
    std::size_t bytes_ = 0;
    std::size_t alignment_ = 64;
};

}  // namespace tensorpool
