#pragma once

/// @file
/// A block of a pool that gives itself back.

#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool {

/// Owns one block. Move-only; one thread at a time. The pool must outlive it.
class PooledAllocation {
public:
    /// Owns nothing.
    PooledAllocation() noexcept = default;
    /// `bytes` from the global pool; owns nothing for 0. Throws as MemoryPool::allocate does.
    explicit PooledAllocation(std::size_t bytes)
        : PooledAllocation(get_global_memory_pool(), bytes) {}
    /// `bytes` from `pool`, aligned to `alignment`, a power of two.
    PooledAllocation(MemoryPool& pool, std::size_t bytes, std::size_t alignment = 64)
        : pool_(&pool),
          block_(pool.allocate(bytes, alignment)),
          bytes_(bytes),
          alignment_(alignment) {}
    ~PooledAllocation() { reset(); }

    PooledAllocation(PooledAllocation&& other) noexcept
        : pool_(other.pool_),
          block_(std::exchange(other.block_, nullptr)),
          bytes_(std::exchange(other.bytes_, 0)),
          alignment_(other.alignment_) {}
    PooledAllocation& operator=(PooledAllocation&& other) noexcept {
        PooledAllocation moved(std::move(other));
        swap(moved);
        return *this;
    }
    PooledAllocation(const PooledAllocation&) = delete;
    PooledAllocation& operator=(const PooledAllocation&) = delete;

    void* get() const noexcept { return block_; }
    /// What was asked for; 0 when it owns nothing.
    std::size_t size() const noexcept { return bytes_; }
    explicit operator bool() const noexcept { return block_ != nullptr; }

    /// The block as `size() / sizeof(T)` elements, which the caller has put there.
    template <class T>
    std::span<T> as() const noexcept {
        static_assert(std::is_trivially_copyable_v<T>, "PooledArray holds other types");
        return {static_cast<T*>(block_), bytes_ / sizeof(T)};
    }

    /// Hands the block to the caller, who gives it back with `deallocate(p)` of the same pool.
    [[nodiscard]] void* release() noexcept {
        bytes_ = 0;
        return std::exchange(block_, nullptr);
    }
    /// Gives the block back now.
    void reset() noexcept {
        if (block_ == nullptr) return;
        pool_->deallocate(block_, bytes_, alignment_);
        block_ = nullptr;
        bytes_ = 0;
    }
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
