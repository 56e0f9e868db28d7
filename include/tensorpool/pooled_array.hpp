#pragma once

/// @file
/// Elements in a block of a pool.

#include <cstddef>
#include <limits>
#include <memory>
#include <utility>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// `count` value-initialised elements in one block, destroyed and given back by it. A contiguous
/// range, and so convertible to std::span<T>. Move-only; one thread at a time. The pool must
/// outlive it.
template <class T>
class PooledArray {
public:
    PooledArray() noexcept = default;
    /// From the global pool.
    explicit PooledArray(std::size_t count) : PooledArray(get_global_memory_pool(), count) {}
    /// Throws AllocationError when `count * sizeof(T)` overflows or cannot be had, and whatever a
    /// constructor throws; then nothing is left behind.
    PooledArray(MemoryPool& pool, std::size_t count)
        : block_(pool, bytes_of(count), alignment), count_(count) {
        std::uninitialized_value_construct_n(data(), count);
    }
    ~PooledArray() { std::destroy_n(data(), count_); }

    PooledArray(PooledArray&& other) noexcept
        : block_(std::move(other.block_)), count_(std::exchange(other.count_, 0)) {}
    PooledArray& operator=(PooledArray&& other) noexcept {
        PooledArray moved(std::move(other));
        block_.swap(moved.block_);
        std::swap(count_, moved.count_);
        return *this;
    }
    PooledArray(const PooledArray&) = delete;
    PooledArray& operator=(const PooledArray&) = delete;

    T* data() const noexcept { return static_cast<T*>(block_.get()); }
    std::size_t size() const noexcept { return count_; }
    bool empty() const noexcept { return count_ == 0; }
    T& operator[](std::size_t i) const noexcept { return data()[i]; }
    T* begin() const noexcept { return data(); }
    T* end() const noexcept { return data() + count_; }

private:
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    static std::size_t bytes_of(std::size_t count) noexcept {
        constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
        return count > most / sizeof(T) ? most : count * sizeof(T);
    }

    PooledAllocation block_;
    std::size_t count_ = 0;
};

}  // namespace tensorpool
