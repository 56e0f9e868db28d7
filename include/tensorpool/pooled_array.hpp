#pragma once

/// @file
/// An array of typed elements in a block of a pool, an arena or any other source.

#include <limits>

#include <tensorpool/pooled_allocation.hpp>

namespace tensorpool {

/// Owns `count` value-initialised elements in one block of a source, and destroys the elements and
/// ends the block when destroyed. The sources, and what the end of a block means, are those of
/// PooledAllocation.
///
/// It is a contiguous range, and so converts to std::span<T>. Move-only. One thread at a time may
/// use it. The source must outlive it.
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
    /// Makes `count` elements in `source`. Throws std::bad_array_new_length if `count * sizeof(T)`
    /// overflows, std::invalid_argument if the host cannot access the memory, what the source
    /// throws, and any exception of an element's constructor; nothing is then left behind.
    ///
    /// In an arena, a context or a scratch, which may release the block before the array ends,
    /// elements must not need a destructor.
    template <OtherSource Source>
    PooledArray(Source& source, std::size_t count)
        : block_(source, checked_bytes_of(count), alignment), count_(count) {
        static_assert(!ReleasingSource<Source> || std::is_trivially_destructible_v<T>,
                      "a release of the source would skip the destructors of the elements");
        construct();
    }
    /// Makes `count` elements in memory of a device allocator for work on a stream, or of another
    /// source that gets the further arguments. Throws std::bad_array_new_length if `count *
    /// sizeof(T)` overflows, std::invalid_argument if the host cannot access the memory, what the
    /// source throws, and any exception of an element's constructor; nothing is then left behind.
    template <class Source, class... Arguments>
    requires StreamSource<Source, Arguments...> PooledArray(Source& source, std::size_t count,
                                                            Arguments... arguments)
        : block_(source, checked_bytes_of(count), arguments...), count_(count) {
        static_assert(alignof(T) <= 256, "device allocators align blocks to 256 bytes");
        construct();
    }
    /// Destroys the elements and ends the block.
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
    /// Returns the handle of the block that the elements lie in.
    const PooledAllocation& allocation() const noexcept { return block_; }

private:
    static constexpr std::size_t alignment = alignof(T) > 64 ? alignof(T) : 64;

    static std::size_t bytes_of(std::size_t count) noexcept {
        constexpr std::size_t max = std::numeric_limits<std::size_t>::max();
        return count > max / sizeof(T) ? max : count * sizeof(T);
    }

    static std::size_t checked_bytes_of(std::size_t count) {
        if (count > std::numeric_limits<std::size_t>::max() / sizeof(T)) {
            throw std::bad_array_new_length();
        }
        return count * sizeof(T);
    }
    void construct() {
        if (block_.host_pointer() != block_.get()) block_.refuse_host("PooledArray");
        std::uninitialized_value_construct_n(data(), count_);
    }

    PooledAllocation block_;
    std::size_t count_ = 0;
};

}  // namespace tensorpool
