#pragma once

/// @file
/// An array of typed elements in a block of a pool.

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// Owns `count` value-initialised elements in one block of a pool, and destroys and frees them when
/// destroyed.
///
/// It is a contiguous range, and so converts to std::span<T>. Move-only. One thread at a time may
/// use it. The pool must outlive it.
template <class T>
class PooledArray {
public:
    /// Makes an empty array.
    PooledArray() noexcept = default;
    /// Makes `count` elements in the global pool. Throws AllocationError if `count * sizeof(T)`
    /// overflows or is unavailable, and any exception of an element's constructor; nothing is then
    /// left behind.
    explicit PooledArray(std::size_t count) : PooledArray(get_global_memory_pool(), count) {}
    /// Makes `count` elements in `pool`. Throws AllocationError if `count * sizeof(T)` overflows or
    /// is unavailable, and any exception of an element's constructor; nothing is then left behind.
    PooledArray(MemoryPool& pool, std::size_t count)
        : block_(pool, bytes_of(count), alignment), count_(count) {
        std::uninitialized_value_construct_n(data(), count);
    }
    /// Destroys the elements and frees the block.
    ~PooledArray() { std::destroy_n(data(), count_); }

    /// Takes the elements of `other`, which is then empty.
    PooledArray(PooledArray&& other) noexcept
        : block_(std::move(other.block_)), count_(std::exchange(other.count_, 0)) {}
    /// Destroys the present elements and takes those of `other`, which is then empty.
    PooledArray& operator=(PooledArray&& other) noexcept {
        PooledArray moved(std::move(other));
        block_.swap(moved.block_);
        std::swap(count_, moved.count_);
        return *this;
    }
    PooledArray(const PooledArray&) = delete;
    PooledArray& operator=(const PooledArray&) = delete;

    /// Returns the address of the first element; nullptr if the array is empty.
    T* data() const noexcept { return static_cast<T*>(block_.get()); }
    /// Returns the number of elements.
    std::size_t size() const noexcept { return count_; }
    /// Returns whether there are no elements.
    bool empty() const noexcept { return count_ == 0; }
    /// Returns element `i`, which must be less than `size()`.
    T& operator[](std::size_t i) const noexcept { return data()[i]; }
    /// Returns an iterator to the first element.
    T* begin() const noexcept { return data(); }
    /// Returns an iterator behind the last element.
    T* end() const noexcept { return data() + count_; }

private:
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    static std::size_t bytes_of(std::size_t count) noexcept {
        constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
        return count > max / sizeof(T) ? max : count * sizeof(T);
    }

    PooledAllocation block_;
    std::size_t count_ = 0;
};

}  // namespace tensorpool
